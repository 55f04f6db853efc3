#pragma once

#include <array>
#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/tensor_functions.h"

namespace lockstep {

struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;  ///< one per entry of `arguments`
};

/// The value of `function` at `inputs`, a floating 0-d tensor (or one element), and its gradients
/// with respect to the inputs with the indices `arguments`. Inputs that the value does not depend
/// on get zeros. Records in any grad mode; no `grad` of any tensor changes.
///
/// Inside vmap each sample has its own gradient: the inputs become new leaves that are expanded
/// over every running batch. The results can be differentiated again when an input requires grad,
/// when this runs inside the function of another gradient, or with `create_graph`, which is for
/// functions that read tensors requiring grad other than their inputs. Throws AutogradError when
/// the value has more than one element or is not floating, IndexError when an index is out of
/// range.
ValueAndGradients value_and_gradients(const TensorFunction& function, TensorList inputs,
                                      std::span<const int64_t> arguments,
                                      bool create_graph = false);

namespace detail {

template <class F, class... T>
ValueAndGradients gradients_of(const F& function, std::span<const int64_t> arguments,
                               const T&... inputs) {
  const std::array<Tensor, sizeof...(T)> list{inputs...};
  return value_and_gradients(
      [&](TensorList given) -> Tensor { return call_with_list<T...>(function, given); },
      TensorList(list), arguments);
}

template <class F>
concept FunctionOfTensors = !std::convertible_to<F, TensorList>;

}  // namespace detail

/// grad(f)(x, y): the gradient of f, which returns one number, with respect to x. Returns a
/// function of tensors again, so that grad(grad(f)) and vmap(grad(f)) work.
template <detail::FunctionOfTensors F>
auto grad(F function) {
  return [function = std::move(function)]<std::same_as<Tensor>... T>(const T&... inputs)->Tensor {
    static constexpr std::array<int64_t, 1> kFirst{0};
    return std::move(detail::gradients_of(function, kFirst, inputs...).gradients[0]);
  };
}
/// The gradients with respect to the inputs with the indices `arguments`.
template <detail::FunctionOfTensors F>
auto grad(F function, std::vector<int64_t> arguments) {
  return [ function = std::move(function),
           arguments = std::move(arguments) ]<std::same_as<Tensor>... T>(const T&... inputs)
      ->std::vector<Tensor> {
    return std::move(detail::gradients_of(function, arguments, inputs...).gradients);
  };
}
/// The value of f and its gradient with respect to the first input.
template <detail::FunctionOfTensors F>
auto value_and_grad(F function) {
  return [function = std::move(
              function)]<std::same_as<Tensor>... T>(const T&... inputs)->std::pair<Tensor, Tensor> {
    static constexpr std::array<int64_t, 1> kFirst{0};
    ValueAndGradients both = detail::gradients_of(function, kFirst, inputs...);
    return {std::move(both.value), std::move(both.gradients[0])};
  };
}

}  // namespace lockstep
