#pragma once

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"

namespace lockstep::cuda {

/// What kernels that carry a state along a dimension are launched with: contiguous
/// [outer, n, inner] tensors of one dtype, scanned along n.
struct ScanLines {
  const void* x;
  const void* decay;  ///< of a linear recurrence
  void* y;
  DType dtype;
  int64_t outer;
  int64_t n;
  int64_t inner;
  // Rows in parts: the running join of the parts of each, [outer, parts] in f64 or int64.
  int64_t part;  ///< elements in one
  int64_t parts;
  void* joined;
};

inline constexpr int kScanThreads = 256;
/// Neighbours that a thread of the kernels over rows takes at a time.
inline constexpr int kScanEach = 4;

/// Elements of a part of a row: where rows are few and long, as many parts as fill a large GPU.
/// The same on every device, since the order of joins depends on it.
constexpr int64_t scan_part(int64_t rows, int64_t n) {
  constexpr int64_t kBlocks = 528;  // four for each of 132 processors
  constexpr int64_t kLeast = 8192;
  const int64_t wanted = std::max<int64_t>(1, kBlocks / rows);
  return std::max(kLeast, (n + wanted - 1) / wanted);
}

}  // namespace lockstep::cuda
