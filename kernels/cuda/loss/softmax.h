#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// What the softmax kernels are launched with: contiguous [outer, n, inner] tensors, normalised
/// along n; inner is 1 for the kernels over rows.
struct SoftmaxLines {
  void* y;
  const void* a;  ///< the input, or the result's gradient
  const void* b;  ///< a backward's other input, the result
  int64_t outer;
  int64_t n;
  int64_t inner;
  DType out_dtype;  ///< of y; a backward's may differ from that of a and b
  bool log;         ///< logarithms of softmax
};

/// Columns are taken by blocks of this many neighbours and of threads for each.
inline constexpr int kSoftmaxColumns = 32;
inline constexpr int kSoftmaxColumnThreads = 8;

}  // namespace lockstep::cuda
