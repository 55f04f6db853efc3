#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Returns `tensor`, with shape [1] if it is 0-d.
template <class Arg>
Arg at_least_1d(Arg tensor) {
  static constexpr int64_t kOne = 1;
  if (tensor.rank == 0) {
    tensor.rank = 1;
    tensor.size_data = tensor.stride_data = &kOne;
  }
  return tensor;
}

}  // namespace lockstep
