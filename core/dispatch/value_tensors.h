#pragma once

#include "core/dispatch/value.h"

namespace lockstep {

/// Calls visit(tensor) for the tensor that a value is, or for each of the list that it is,
/// undefined ones among them. Values of other types have none.
template <class F>
void each_tensor(const Value& value, F&& visit) {
  if (value.is_tensor()) {
    visit(value.tensor());
  } else if (value.is_tensor_list()) {
    for (const Tensor& tensor : value.tensors()) visit(tensor);
  }
}

/// The same without undefined tensors.
template <class F>
void each_defined_tensor(const Value& value, F&& visit) {
  each_tensor(value, [&](const Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
  });
}

}  // namespace lockstep
