#pragma once

#include <array>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/base/current_scope.h"
#include "core/dispatch/adapters.h"
#include "core/dispatch/destination.h"
#include "core/dispatch/run_kernel.h"

/// The wrapper around every structured operator: from one shape rule, and one kernel for each
/// backend, it makes the functional, in-place and out= forms and the meta kernel. It allocates
/// results, casts to the dtype that the rule computes in, gives the kernel strides that it can
/// take, refuses overlapping memory, and bumps version counters.
namespace lockstep::structured {

/// Says that the tensors of a `Tensor(a!)[]` argument changed. Other arguments are not written.
template <class A>
void bump_written(const A& argument) {
  if constexpr (std::is_same_v<A, MutableTensorList>) {
    for (const Tensor& tensor : argument) tensor.storage()->bump_version();
  }
}

template <class Signature>
struct Forms;

/// Results returned as a Tensor or as a tuple of them.
template <class R, size_t kCount, class... A>
struct FunctionalForm {
  static R call(const Operator& op, KeySet keys, A... arguments) {
    const OperatorScope scope(op);
    const Key backend = keys.highest();
    const Outputs outputs =
        reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
    const Device device = result_device(op, arguments...);
    constexpr std::make_index_sequence<kCount> indices;
    if (op.allocates_only()) return memory(outputs, device, indices);
    Preparation preparation = prepare(op, backend, device, outputs);
    return run(op, preparation, outputs, device, indices, arguments...);
  }

 private:
  template <size_t... O>
  static R memory(const Outputs& outputs, Device device, std::index_sequence<O...>) {
    return R{allocate(outputs.specs[O], device)...};
  }
  template <size_t... O>
  static R run(const Operator& op, Preparation& preparation, const Outputs& outputs, Device device,
               std::index_sequence<O...> indices, Passed<A>... arguments) {
    std::array<Target, kCount> targets{Target(preparation, outputs.specs[O], device)...};
    const std::array<const Out*, kCount> outs{&targets[O].out()...};
    using Kernel = typename StructuredKernel<R(A...)>::type;
    run_kernel<Kernel, A...>(preparation, op.root().kernel(preparation.backend), outs, indices,
                             arguments...);
    (targets[O].finish(preparation), ...);
    return R{targets[O].take()...};
  }
};

template <class... A>
struct Forms<Tensor(A...)> {
  using Functional = FunctionalForm<Tensor, 1, A...>;
  using Kernel = typename StructuredKernel<Tensor(A...)>::type;

  static const Tensor& write(const Operator& op, KeySet keys, const Tensor& destination,
                             bool resizable, Passed<A>... arguments) {
    const OperatorScope scope(op);
    const Key backend = keys.highest();
    const Outputs outputs =
        reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
    const Device device = result_device(op, destination, arguments...);
    if (destination.device() != device) [[unlikely]] {
      throw_other_device(op, device, destination);
    }
    Preparation preparation = prepare(op, backend, device, outputs);
    Target target(preparation, outputs.specs[0], destination, resizable,
                  read_back(preparation, destination, arguments...));
    const std::array<const Out*, 1> outs{&target.out()};
    run_kernel<Kernel, A...>(preparation, op.root().kernel(backend), outs, std::index_sequence<0>(),
                             arguments...);
    target.finish(preparation);
    destination.storage()->bump_version();
    return destination;
  }
};

template <class Signature>
struct InPlace;
/// The first argument is also the result.
template <class... Rest>
struct InPlace<Tensor(const Tensor&, Rest...)> {
  static const Tensor& call(const Operator& op, KeySet keys, const Tensor& self, Rest... rest) {
    return Forms<Tensor(const Tensor&, Rest...)>::write(op, keys, self, false, self, rest...);
  }
  using Signature = const Tensor&(const Tensor&, Rest...);
};

template <class Signature>
struct OutForm;
/// `out` comes last, as in ATen's schemas.
template <class... A>
struct OutForm<Tensor(A...)> {
  static const Tensor& call(const Operator& op, KeySet keys, A... arguments, const Tensor& out) {
    return Forms<Tensor(A...)>::write(op, keys, out, true, arguments...);
  }
  using Signature = const Tensor&(A..., const Tensor&);
};

template <class... R, class... A>
struct Forms<std::tuple<R...>(A...)> {
  using Functional = FunctionalForm<std::tuple<R...>, sizeof...(R), A...>;
};
/// No result: the operator writes into its `Tensor(a!)[]` arguments.
template <class... A>
struct Forms<void(A...)> {
  struct Functional {
    static void call(const Operator& op, KeySet keys, A... arguments) {
      const OperatorScope scope(op);
      const Key backend = keys.highest();
      const Outputs outputs =
          reinterpret_cast<Outputs (*)(A...)>(op.definition())(static_cast<A>(arguments)...);
      const Device device = result_device(op, arguments...);
      Preparation preparation = prepare(op, backend, device, outputs);
      using Kernel = typename StructuredKernel<void(A...)>::type;
      run_kernel<Kernel, A...>(preparation, op.root().kernel(backend), {}, std::index_sequence<>(),
                               arguments...);
      (bump_written(arguments), ...);
    }
  };
};

}  // namespace lockstep::structured
