#pragma once

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
};

inline constexpr int kScanThreads = 256;
/// Neighbours that a thread of the kernels over rows takes at a time.
inline constexpr int kScanEach = 4;

}  // namespace lockstep::cuda
