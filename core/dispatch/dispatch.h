#pragma once

#include <tuple>
#include <type_traits>

#include "core/dispatch/each_tensor.h"
#include "core/dispatch/operator.h"

namespace lockstep {

namespace detail {

template <class T>
inline constexpr bool is_device_option =
    std::is_same_v<std::remove_cvref_t<T>, std::optional<Device>>;

/// What one argument adds to a call's key set.
template <class A>
KeySet keys_from(const Operator& op, const A& argument) {
  if constexpr (is_device_option<A>) {
    return argument ? KeySet(backend_key(argument->type)) : KeySet();
  } else {
    KeySet keys;
    each_tensor(argument, [&](const Tensor& tensor) {
      if (!tensor.defined()) [[unlikely]] {
        op.throw_undefined_argument();
      }
      keys |= tensor.impl()->keys;
    });
    return keys;
  }
}

/// A device option decides over the tensors' backends: `zeros_like(x, device)` runs on `device`.
template <class... A>
KeySet argument_keys(const Operator& op, const A&... arguments) {
  KeySet keys = (KeySet() | ... | keys_from(op, arguments));
  if constexpr ((is_device_option<A> || ...)) {
    const KeySet chosen = (KeySet() | ... | [&]<class T>(const T& argument) {
      if constexpr (is_device_option<T>) return keys_from(op, argument);
      return KeySet();
    }(arguments));
    if (!chosen.empty()) keys = (keys - KeySet::backends()) | chosen;
    if ((keys & KeySet::backends()).empty()) keys |= backend_key(default_device().type);
  }
  return keys;
}

}  // namespace detail

/// Calls one operator through its C++ signature. Copyable; the size of a pointer.
template <class Signature>
class TypedOp;

template <class R, class... A>
class TypedOp<R(A...)> {
 public:
  using Entry = R (*)(const Operator&, KeySet, A...);

  TypedOp() = default;
  explicit TypedOp(const Operator* op) : op_(op) {}

  /// Computes the call's key set and runs the table entry of its highest key.
  R operator()(A... arguments) const {
    const detail::ThreadKeys& thread = detail::thread_keys;
    const KeySet keys =
        ((detail::argument_keys(*op_, arguments...) | thread.included) - thread.excluded) &
        op_->mask();
    return redispatch(keys, static_cast<A>(arguments)...);
  }
  /// Runs the table entry of the highest key in `keys`. A handler calls this to pass a call on.
  R redispatch(KeySet keys, A... arguments) const {
    if (keys.empty()) [[unlikely]] {
      op_->throw_missing(keys);
    }
    return reinterpret_cast<Entry>(op_->entry(keys.highest()))(*op_, keys,
                                                               static_cast<A>(arguments)...);
  }
  const Operator& info() const { return *op_; }

 private:
  const Operator* op_ = nullptr;
};

}  // namespace lockstep
