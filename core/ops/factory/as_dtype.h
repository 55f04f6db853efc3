#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// The tensor itself where it has the dtype, else a copy that has.
inline Tensor as_dtype(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor : tensor.to(dtype);
}

}  // namespace lockstep
