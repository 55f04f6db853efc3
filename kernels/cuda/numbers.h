#pragma once

#include "core/tensor/dtype.h"

namespace lockstep::cuda {

/// Numbers side by side whose dtype device code looks up; null where there are none.
struct Numbers {
  void* data;
  DType dtype;
};

/// Those of a TensorArg, which device code does not know.
template <class Tensor>
Numbers numbers_of(const Tensor& tensor) {
  if (!tensor.defined()) return {nullptr, DType::kF32};
  return {tensor.address, tensor.dtype};
}

}  // namespace lockstep::cuda
