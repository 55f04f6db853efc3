#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// Arguments of the scan kernels: contiguous [outer, n, inner] tensors of one dtype, scanned along
/// n. If there are too few lines to fill a GPU, they are split into parts: the parts are reduced,
/// the totals are scanned, and each part is then scanned from its carry.
struct ScanLines {
  const void* x;
  const void* decay;  ///< for a linear recurrence
  void* y;
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t inner;
  int64_t part;  ///< elements per part
  int64_t parts;
  void* joined;  ///< states [outer, parts, inner]; null if there is a single part
};

inline constexpr int kScanThreads = 256;
/// Adjacent elements that a thread of the row kernels processes at a time.
inline constexpr int kScanEach = 4;

// Elements per part: enough parts to fill a large GPU, but not too short. The same on every device,
// since the order of operations depends on it.

/// For a contiguous line, which a block scans.
constexpr int64_t scan_row_part(int64_t rows, int64_t n) {
  constexpr int64_t kBlocks = 528;  // four for each of 132 SMs
  constexpr int64_t kLeast = 8192;
  const int64_t wanted = std::max<int64_t>(1, kBlocks / rows);
  return std::max(kLeast, (n + wanted - 1) / wanted);
}

/// For a strided line, which a thread scans.
constexpr int64_t scan_line_part(int64_t lines, int64_t n) {
  constexpr int64_t kThreads = int64_t{132} * 1024;
  constexpr int64_t kMost = 1024;  // parts, which one warp scans
  constexpr int64_t kLeast = 64;
  const int64_t wanted = std::clamp<int64_t>(kThreads / lines, 1, kMost);
  return std::max(kLeast, (n + wanted - 1) / wanted);
}

}  // namespace lockstep::cuda
