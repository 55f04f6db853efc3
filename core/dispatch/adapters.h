#pragma once

#include <array>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatch_trace.h"
#include "core/dispatch/observer.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace detail {

// C++ argument type -> schema type, for the check that an operator block's C++ signature matches
// its schema.
template <class T>
struct SchemaType;
#define LS_SCHEMA_TYPE(T, ...)                 \
  template <>                                  \
  struct SchemaType<T> {                       \
    static constexpr Type value = __VA_ARGS__; \
  }
LS_SCHEMA_TYPE(const Tensor&, {BaseType::kTensor});
LS_SCHEMA_TYPE(OptionalTensor, {BaseType::kTensor, true});
LS_SCHEMA_TYPE(TensorList, {BaseType::kTensor, false, true});
LS_SCHEMA_TYPE(MutableTensorList, {BaseType::kTensor, false, true});
LS_SCHEMA_TYPE(OptionalTensorList, {BaseType::kTensor, false, true, true});
LS_SCHEMA_TYPE(Scalar, {BaseType::kScalar});
LS_SCHEMA_TYPE(int64_t, {BaseType::kInt});
LS_SCHEMA_TYPE(double, {BaseType::kFloat});
LS_SCHEMA_TYPE(bool, {BaseType::kBool});
LS_SCHEMA_TYPE(IntList, {BaseType::kInt, false, true});
LS_SCHEMA_TYPE(DoubleList, {BaseType::kFloat, false, true});
LS_SCHEMA_TYPE(std::string_view, {BaseType::kStr});
LS_SCHEMA_TYPE(DType, {BaseType::kDType});
LS_SCHEMA_TYPE(Device, {BaseType::kDevice});
LS_SCHEMA_TYPE(Layout, {BaseType::kLayout});
LS_SCHEMA_TYPE(MemoryFormat, {BaseType::kMemoryFormat});
LS_SCHEMA_TYPE(BoolList, {BaseType::kBool, false, true});
LS_SCHEMA_TYPE(Generator*, {BaseType::kGenerator, true});
#undef LS_SCHEMA_TYPE
template <class T>
struct SchemaType<std::optional<T>> {
  static constexpr Type value = {SchemaType<T>::value.base, true, SchemaType<T>::value.list};
};

// Result -> values on the stack.
inline void push_result(Stack& stack, Tensor&& result) {
  if (result.defined()) {
    stack.results().emplace_back(std::move(result));
  } else {
    stack.results().emplace_back();
  }
}
inline void push_result(Stack& stack, const Tensor& result) {
  stack.results().emplace_back(result);
}
inline void push_result(Stack& stack, std::vector<Tensor>&& result) {
  stack.results().emplace_back(std::move(result));
}
template <class T>
requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>) void push_result(Stack& stack,
                                                                                T result) {
  stack.results().emplace_back(Value(result));
}
template <class... T>
void push_result(Stack& stack, std::tuple<T...>&& result) {
  std::apply([&](T&... each) { (push_result(stack, std::move(each)), ...); }, result);
}

// Values on the stack -> result.
template <class R>
struct PopResult {
  static R get(Stack& stack, const Operator&) { return FromValue<R>::get(stack.results()[0]); }
};
template <>
struct PopResult<Tensor> {
  static Tensor get(Stack& stack, const Operator&) { return stack.results()[0].take_tensor(); }
};
template <>
struct PopResult<std::vector<Tensor>> {
  static std::vector<Tensor> get(Stack& stack, const Operator&) {
    return stack.results()[0].take_tensors();
  }
};
template <>
struct PopResult<const Tensor&> {
  // The result is one of the arguments, which outlive the stack.
  static const Tensor& get(Stack& stack, const Operator& op) {
    return stack.arguments()[static_cast<size_t>(op.alias_argument())].tensor();
  }
};
template <>
struct PopResult<void> {
  static void get(Stack&, const Operator&) {}
};
template <class... T>
struct PopResult<std::tuple<T...>> {
  static std::tuple<T...> get(Stack& stack, const Operator&) {
    size_t i = 0;
    return std::tuple<T...>{[&]() -> T {
      Value& value = stack.results()[i++];
      if constexpr (std::is_same_v<T, Tensor>) {
        return value.take_tensor();
      } else {
        return FromValue<T>::get(value);
      }
    }()...};
  }
};

}  // namespace detail

/// Functions of one C++ signature R(A...), shared by every operator that has it.
template <class Signature>
struct SignatureAdapters;

template <class R, class... A>
struct SignatureAdapters<R(A...)> {
  using Entry = R (*)(const Operator&, KeySet, A...);

  [[noreturn]] static R missing(const Operator& op, KeySet keys, A...) { op.throw_missing(keys); }

  static R direct(const Operator& op, KeySet keys, A... arguments) {
    using Function = R (*)(A...);
    const AnyFunction kernel = op.kernel(keys.highest());
    const AnyFunction body = kernel != nullptr ? kernel : op.definition();
    return reinterpret_cast<Function>(body)(static_cast<A>(arguments)...);
  }

  static R observed(const Operator& op, KeySet keys, A... arguments) {
    const KeySet below = keys & KeySet::below(Key::kObserver);
    if (below.empty()) op.throw_missing(below);
    std::array<Value, sizeof...(A)> values{Value(arguments)...};
    Stack stack(values);
    {
      const ObservedCall call(op, below, stack);
      op.redispatch_boxed(below, stack);
    }
    return detail::PopResult<R>::get(stack, op);
  }

  static R traced(const Operator& op, KeySet keys, A... arguments) {
    const TracedCall call(op, keys);
    return reinterpret_cast<Entry>(op.cell(keys.highest()).entry)(op, keys,
                                                                  static_cast<A>(arguments)...);
  }

  static R boxed(const Operator& op, KeySet keys, A... arguments) {
    std::array<Value, sizeof...(A)> values{Value(arguments)...};
    Stack stack(values);
    op.boxed_kernel(keys.highest())(op, keys, stack);
    return detail::PopResult<R>::get(stack, op);
  }

  static void unbox(const Operator& op, KeySet keys, AnyFunction entry, Stack& stack) {
    unbox_each(op, keys, reinterpret_cast<Entry>(entry), stack, std::index_sequence_for<A...>());
  }

  static OpAdapters make() {
    OpAdapters adapters;
    adapters.missing = reinterpret_cast<AnyFunction>(&missing);
    adapters.boxed = reinterpret_cast<AnyFunction>(&boxed);
    adapters.direct = reinterpret_cast<AnyFunction>(&direct);
    adapters.observed = reinterpret_cast<AnyFunction>(&observed);
    adapters.traced = reinterpret_cast<AnyFunction>(&traced);
    adapters.unbox = &unbox;
    adapters.functional_type = &typeid(R(const Operator&, KeySet, A...));
    adapters.kernel_type = &typeid(R(A...));
    adapters.argument_types = {detail::SchemaType<A>::value...};
    return adapters;
  }

 private:
  template <size_t... I>
  static void unbox_each(const Operator& op, KeySet keys, Entry entry,
                         [[maybe_unused]] Stack& stack, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      entry(op, keys, FromValue<A>::get(stack.arguments()[I])...);
    } else {
      detail::push_result(stack, entry(op, keys, FromValue<A>::get(stack.arguments()[I])...));
    }
  }
};

}  // namespace lockstep
