#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// Arguments of the softmax kernels: contiguous [outer, n, inner] tensors, normalised along n;
/// inner is 1 for the row kernels.
struct SoftmaxLines {
  void* y;
  const void* a;  ///< forward: the input; backward: the output's gradient
  const void* b;  ///< backward: the output
  int64_t outer;
  int64_t n;
  int64_t inner;
  DType out_dtype;  ///< dtype of y; in the backward pass it may differ from that of a and b
  bool log;         ///< log_softmax
};

/// Adjacent columns per block of the column kernels, and threads per column.
inline constexpr int kSoftmaxColumns = 32;
inline constexpr int kSoftmaxColumnThreads = 8;

}  // namespace lockstep::cuda
