#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "core/dispatch/dispatch.h"
#include "core/dispatch/each_tensor.h"
#include "core/tensor/outputs.h"

namespace lockstep::structured {

/// State of one call while its kernel's parameters are prepared.
struct Preparation {
  const Operator& op;
  Key backend;
  Execution execution;
  Device device;  ///< where the kernel runs
  std::optional<DType> compute;
  uint64_t cast_mask;
  Strides strides;
  size_t workspace_bytes;
  size_t ordinal = 0;  ///< of the next tensor argument
};

/// True when the kernel can read `impl` as it is.
bool acceptable(const Preparation& preparation, const TensorImpl& impl,
                std::optional<DType> compute);
/// A copy of `tensor` that the kernel can read. Counted as a hidden copy, except on meta, where
/// nothing is copied, and where a device option asked for another device.
Tensor converted(const Preparation& preparation, const Tensor& tensor, bool cast);

/// A fresh result. Its dtype is the spec's.
Tensor allocate(const OutputSpec& spec, Device device);

/// Begins a call of `op` whose rule returned `outputs`.
inline Preparation prepare(const Operator& op, Key backend, Device device, const Outputs& outputs) {
  const Cell& cell = op.root().cell(backend);
  return {op,
          backend,
          cell.execution,
          device,
          outputs.compute,
          outputs.cast_mask,
          cell.strides,
          outputs.workspace_bytes};
}

/// A number in the form of a tensor: it may meet tensors of any device, and is copied to theirs.
inline bool is_cpu_number(const TensorImpl& impl) {
  return impl.storage->device() == kCPU && impl.sizes.empty();
}

/// Finds the device of a call's tensors: that of the first one. Numbers on the cpu decide only when
/// there is no other tensor.
class CallDevice {
 public:
  void see(const Tensor& tensor) {
    if (decisive_ == nullptr || is_cpu_number(*decisive_)) decisive_ = tensor.impl();
  }
  /// The thread's default device when no tensor was seen.
  Device get() const {
    return decisive_ != nullptr ? decisive_->storage->device() : default_device();
  }

 private:
  const TensorImpl* decisive_ = nullptr;
};

[[noreturn]] void throw_other_device(const Operator& op, Device device, const Tensor& tensor);
/// Throws DeviceError unless `tensor`, which is elsewhere than the call, is a number on the cpu.
void check_other_device(const Operator& op, Device device, const Tensor& tensor);
/// Throws DeviceError when the tensors of a call are on different devices.
inline void check_same_device(const Operator& op, Device device, const Tensor& tensor) {
  if (tensor.impl()->storage->device() != device) [[unlikely]] {
    check_other_device(op, device, tensor);
  }
}
/// The device results are made on: the device option, else that of the call's tensors.
template <class... A>
Device result_device(const Operator& op, const A&... arguments) {
  const Device* chosen = nullptr;
  (..., [&]<class T>(const T& argument) {
    if constexpr (detail::is_device_option<T>) {
      if (argument) chosen = &*argument;
    }
  }(arguments));
  if (chosen != nullptr) return *chosen;
  CallDevice found;
  (each_tensor(arguments, [&](const Tensor& tensor) { found.see(tensor); }), ...);
  const Device device = found.get();
  (each_tensor(arguments, [&](const Tensor& tensor) { check_same_device(op, device, tensor); }),
   ...);
  return device;
}

/// How the wrapper hands an argument of type A on to its own parts: what is small is copied only
/// for the rule and for the kernel.
template <class A>
using Passed = const std::remove_reference_t<A>&;

/// Holds what one kernel parameter refers to.
template <class A>
struct Parameter {
  Passed<A> value;
  Parameter(Preparation&, Passed<A> argument) : value(argument) {}
  A get() { return static_cast<A>(value); }
};

struct TensorParameter {
  Tensor copy;
  In in;
  void set(Preparation& preparation, const Tensor& tensor) {
    const bool cast = (preparation.cast_mask >> preparation.ordinal) & 1;
    const std::optional<DType> compute = cast ? preparation.compute : std::nullopt;
    ++preparation.ordinal;
    if (acceptable(preparation, *tensor.impl(), compute)) [[likely]] {
      in.refer_to(*tensor.impl());
    } else {
      copy = converted(preparation, tensor, cast);
      in.refer_to(*copy.impl());
    }
  }
  const In& get() { return in; }
};
template <>
struct Parameter<const Tensor&> : TensorParameter {
  Parameter(Preparation& preparation, const Tensor& tensor) { set(preparation, tensor); }
};
template <>
struct Parameter<OptionalTensor> : TensorParameter {
  Parameter(Preparation& preparation, OptionalTensor tensor) {
    if (tensor) {
      set(preparation, *tensor);
    } else {
      ++preparation.ordinal;
    }
  }
};
template <>
struct Parameter<TensorList> {
  SmallVector<TensorParameter, 4> each;
  SmallVector<In, 8> ins;
  Parameter(Preparation& preparation, TensorList list) {
    const size_t ordinal = preparation.ordinal;
    each.reserve(list.size());
    for (const Tensor& tensor : list) {
      preparation.ordinal = ordinal;  // a list is one argument
      TensorParameter& slot = each.emplace_back();
      if (tensor.defined()) slot.set(preparation, tensor);
      ins.push_back(slot.in);
    }
    preparation.ordinal = ordinal + 1;
  }
  InList get() { return {ins.data(), ins.size()}; }
};
template <>
struct Parameter<OptionalTensorList> : Parameter<TensorList> {
  using Parameter<TensorList>::Parameter;
};
template <>
struct Parameter<MutableTensorList> {
  SmallVector<Out, 8> outs;
  Parameter(Preparation& preparation, MutableTensorList list) {
    ++preparation.ordinal;
    for (const Tensor& tensor : list) outs.emplace_back(*tensor.impl());
  }
  OutList get() { return {outs.data(), outs.size()}; }
};

/// All parameters of a call, made in the order of the arguments: `ordinal` relies on it.
template <size_t I, class A>
struct IndexedParameter : Parameter<A> {
  using Parameter<A>::Parameter;
};
template <class Indices, class... A>
struct Parameters;
template <size_t... I, class... A>
struct Parameters<std::index_sequence<I...>, A...> : IndexedParameter<I, A>... {
  Parameters(Preparation& preparation, Passed<A>... arguments)
      : IndexedParameter<I, A>(preparation, arguments)... {}

  template <class F>
  void apply(F&& f) {
    f(static_cast<IndexedParameter<I, A>&>(*this).get()...);
  }
};

}  // namespace lockstep::structured
