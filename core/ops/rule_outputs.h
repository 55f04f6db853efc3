#pragma once

#include "core/tensor/outputs.h"
#include "core/tensor/tensor.h"

namespace lockstep::rules {

// What rules of layers say of their results.

/// Adds a result; one that is not present is an undefined tensor.
inline void add_output(Outputs& outputs, IntList sizes, DType dtype, bool present = true) {
  OutputSpec& spec = outputs.specs.emplace_back();
  spec.sizes = to_dims(sizes);
  spec.dtype = dtype;
  spec.present = present;
}

/// The dtype of an optional tensor, or another where it is absent.
inline DType dtype_or(OptionalTensor tensor, DType otherwise) {
  return tensor ? tensor->dtype() : otherwise;
}

}  // namespace lockstep::rules
