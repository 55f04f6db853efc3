#pragma once

#include <type_traits>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Calls visit(tensor) for each tensor of an argument of any schema type: for the tensor itself, an
/// optional one that is present, and the elements of a list; undefined elements of a list of
/// optional tensors are left out. Arguments of other types have none.
template <class A, class F>
void each_tensor(const A& argument, F&& visit) {
  if constexpr (std::is_same_v<A, Tensor>) {
    visit(argument);
  } else if constexpr (std::is_same_v<A, OptionalTensor>) {
    if (argument) visit(*argument);
  } else if constexpr (std::is_same_v<A, TensorList> || std::is_same_v<A, MutableTensorList>) {
    for (const Tensor& tensor : argument) visit(tensor);
  } else if constexpr (std::is_same_v<A, OptionalTensorList>) {
    for (const Tensor& tensor : argument) {
      if (tensor.defined()) visit(tensor);
    }
  }
}

}  // namespace lockstep
