#pragma once

#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/function_call.h"

namespace lockstep {

namespace detail {
template <class Forward>
struct FunctionSignature;
}  // namespace detail

/// A user-defined operation with its own derivative, for what operators do not offer or do less
/// well: a fused formula, a gradient that is not the derivative, code that is not differentiable.
///
///     struct Cube : Function<Cube> {
///       static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
///         ctx.save_for_backward({x});
///         ctx.set_data(scale);
///         return x * x * x * scale;
///       }
///       static Gradients backward(FunctionContext& ctx, const Tensor& grad) {
///         const Tensor& x = ctx.saved(0);
///         return {grad * x * x * (3 * ctx.data<double>())};
///       }
///     };
///     const Tensor y = Cube::apply(x, 2.0);  // y.grad_fn()->name() is "CubeBackward"
///
/// `forward` takes any mix of tensors, lists of tensors (std::vector<Tensor>, TensorList), optional
/// tensors (std::optional<Tensor>, OptionalTensor) and other values, and returns a Tensor, a
/// std::tuple of Tensors or a std::vector<Tensor>. It runs without recording. A result that is an
/// argument, unless marked dirty, is replaced by a view of it.
///
/// `backward` takes one `const Tensor&` per result, or all as a TensorList, and returns one
/// gradient per tensor argument (each tensor of a list and each absent optional tensor counts);
/// undefined means zero. Written with operators it can be differentiated again. If the Function
/// declares `static constexpr bool once_differentiable = true;`, backward runs without recording,
/// and a second derivative throws AutogradError.
///
/// Under vmap, a static method `vmap(const FunctionBatch& batch, ...)`, if there is one, runs
/// instead of forward, with forward's other parameters and results: batched tensors have the batch
/// dimension in front, and so must every result. It may call `apply` on the whole batch.
///
/// A view that forward makes of an argument cannot be changed in place while recording is on:
/// clone() it first.
///
/// `apply` throws what forward throws, and AutogradError for marks that contradict the rules above.
/// backward's exceptions reach the caller of the engine; so does AutogradError for a wrong number
/// of gradients, or one of the wrong shape or dtype. May be called by several threads at once.
template <class Derived>
class Function {
 public:
  template <class... A>
  static auto apply(A&&... arguments) {
    static_assert(
        requires { &Derived::forward; },
        "a Function needs `static ... forward(FunctionContext&, ...)`, not overloaded");
    static_assert(
        requires { &Derived::backward; },
        "a Function needs `static Gradients backward(FunctionContext&, ...)`, not overloaded");
    using Signature = detail::FunctionSignature<decltype(&Derived::forward)>;
    return Signature::template apply<Derived>(std::forward<A>(arguments)...);
  }
};

namespace detail {

template <class T>
inline constexpr bool kIsTensorList = std::is_convertible_v<const T&, std::span<const Tensor>>;

template <class T>
void add_inputs(FunctionInputs& inputs, const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) {
    inputs.push_back(argument);
  } else if constexpr (std::is_same_v<T, OptionalTensor>) {
    inputs.push_back(argument.value_or_undefined());
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    inputs.push_back(argument.value_or(Tensor()));
  } else if constexpr (kIsTensorList<T>) {
    for (const Tensor& tensor : std::span<const Tensor>(argument)) inputs.push_back(tensor);
  }
}

/// Converts an argument of forward to what the vmap method gets: the whole batch in front.
template <class P>
decltype(auto) in_front(std::remove_reference_t<P>& argument, size_t depth) {
  using T = std::remove_cvref_t<P>;
  if constexpr (std::is_same_v<T, Tensor>) {
    return with_batch_in_front(argument, depth);
  } else if constexpr (std::is_same_v<T, OptionalTensor>) {
    return with_batch_in_front(argument.value_or_undefined(), depth);
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    std::optional<Tensor> whole;
    if (argument) whole = with_batch_in_front(*argument, depth);
    return whole;
  } else if constexpr (kIsTensorList<T>) {
    std::vector<Tensor> wholes;
    for (const Tensor& tensor : std::span<const Tensor>(argument)) {
      wholes.push_back(with_batch_in_front(tensor, depth));
    }
    return wholes;
  } else {
    return static_cast<P&&>(argument);
  }
}

template <class T>
FunctionResults results_of(T& result) {
  FunctionResults results;
  if constexpr (std::is_same_v<T, Tensor>) {
    results.push_back(&result);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    for (Tensor& tensor : result) results.push_back(&tensor);
  } else {
    std::apply([&](auto&... tensor) { (results.push_back(&tensor), ...); }, result);
  }
  return results;
}

template <class Derived, size_t... I>
Gradients call_backward(FunctionContext& ctx, TensorList grads, std::index_sequence<I...>) {
  check_gradient_count(typeid(Derived), sizeof...(I), grads.size());
  return Derived::backward(ctx, grads[I]...);
}

template <class R, class... G>
constexpr size_t count_gradients(R (*)(FunctionContext&, G...)) {
  return sizeof...(G);
}

template <class Derived>
Gradients call_backward(FunctionContext& ctx, TensorList grads) {
  if constexpr (std::is_invocable_v<decltype(&Derived::backward), FunctionContext&, TensorList>) {
    return Derived::backward(ctx, grads);
  } else {
    return call_backward<Derived>(ctx, grads,
                                  std::make_index_sequence<count_gradients(&Derived::backward)>());
  }
}

template <class Derived>
constexpr bool is_once_differentiable() {
  if constexpr (requires { Derived::once_differentiable; }) return Derived::once_differentiable;
  return false;
}

template <class Derived>
inline constexpr FunctionInfo kFunctionInfo{
    typeid(Derived),
    static_cast<Gradients (*)(FunctionContext&, TensorList)>(&call_backward<Derived>),
    is_once_differentiable<Derived>()};

template <class R, class... P>
struct FunctionSignature<R (*)(FunctionContext&, P...)> {
  template <class Derived>
  static std::remove_cvref_t<R> apply(P... arguments) {
    FunctionInputs inputs;
    (add_inputs<std::remove_cvref_t<P>>(inputs, arguments), ...);
    if (const std::optional<size_t> depth = batched_depth(kFunctionInfo<Derived>, inputs)) {
      return apply_batched<Derived>(inputs, *depth, arguments...);
    }
    FunctionCall call(kFunctionInfo<Derived>, std::move(inputs));
    std::remove_cvref_t<R> result = call.run([&](FunctionContext& ctx) {
      return Derived::forward(ctx, static_cast<P&&>(arguments)...);
    });
    call.finish(results_of(result));
    return result;
  }

 private:
  template <class Derived>
  static std::remove_cvref_t<R> apply_batched(const FunctionInputs& inputs, size_t depth,
                                              std::remove_reference_t<P>&... arguments) {
    if constexpr (requires { &Derived::vmap; }) {
      const FunctionBatch batch = batch_of(inputs, depth);
      std::remove_cvref_t<R> result = [&] {
        const OuterVmapsGuard outer(depth);
        return Derived::vmap(batch, in_front<P>(arguments, depth)...);
      }();
      give_samples(kFunctionInfo<Derived>, results_of(result), depth);
      return result;
    } else {
      throw_no_vmap(kFunctionInfo<Derived>);
    }
  }
};

}  // namespace detail

}  // namespace lockstep
