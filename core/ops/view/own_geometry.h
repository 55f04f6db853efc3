#pragma once

#include "core/tensor/outputs.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// The view of all of a tensor as it lies, to be changed in a place or two.
inline ViewSpec same_as(const Tensor& self) {
  return {to_dims(self.sizes()), to_dims(self.strides()), self.storage_offset(), {}};
}

}  // namespace lockstep
