#pragma once

#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/norm/norm.h"

namespace lockstep::cuda {

inline NormVector vector_of(const TensorArg& tensor) {
  return {tensor.defined() ? tensor.address : nullptr, tensor.dtype};
}

/// Queues dw = the sum of partial_weight [groups, n] over the groups, and the same for db, in one
/// launch. Either result may be undefined, not both; n > 0. `wide`: partial sums are f64, else f32.
void join_norm_groups(const Out& dw, const void* partial_weight, const Out& db,
                      const void* partial_bias, int64_t groups, int64_t n, bool wide);

}  // namespace lockstep::cuda
