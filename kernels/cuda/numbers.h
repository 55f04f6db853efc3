#pragma once

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// A contiguous vector whose dtype device code dispatches on at run time; null if absent.
struct Numbers {
  void* data;
  DType dtype;
};

/// Converts from a TensorArg, which device code cannot use.
template <class Tensor>
Numbers numbers_of(const Tensor& tensor) {
  if (!tensor.defined()) return {nullptr, DType::kF32};
  return {tensor.address, tensor.dtype};
}

}  // namespace lockstep::cuda
