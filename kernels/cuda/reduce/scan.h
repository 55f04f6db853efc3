#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// What kernels that carry a state along a dimension are launched with: contiguous
/// [outer, n, inner] tensors of one dtype, scanned along n. Lines are cut into parts where there
/// are too few of them to fill a GPU; then the parts' joins are made, scanned, and carried into
/// the parts.
struct ScanLines {
  const void* x;
  const void* decay;  ///< of a linear recurrence
  void* y;
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t inner;
  int64_t part;  ///< elements in one
  int64_t parts;
  void* joined;  ///< states [outer, parts, inner]; null where there is one part
};

inline constexpr int kScanThreads = 256;
/// Neighbours that a thread of the kernels over rows takes at a time.
inline constexpr int kScanEach = 4;

// Elements of a part: as many parts as fill a large GPU, none too short. The same on every device,
// since the order of joins depends on it.

/// Of a row, which a block goes along.
constexpr int64_t scan_row_part(int64_t rows, int64_t n) {
  constexpr int64_t kBlocks = 528;  // four for each of 132 processors
  constexpr int64_t kLeast = 8192;
  const int64_t wanted = std::max<int64_t>(1, kBlocks / rows);
  return std::max(kLeast, (n + wanted - 1) / wanted);
}

/// Of a line whose elements are no neighbours, which a thread goes along.
constexpr int64_t scan_line_part(int64_t lines, int64_t n) {
  constexpr int64_t kThreads = int64_t{132} * 1024;
  constexpr int64_t kMost = 1024;  // parts: a warp scans them
  constexpr int64_t kLeast = 64;
  const int64_t wanted = std::clamp<int64_t>(kThreads / lines, 1, kMost);
  return std::max(kLeast, (n + wanted - 1) / wanted);
}

}  // namespace lockstep::cuda
