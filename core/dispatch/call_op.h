#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/dispatch/dispatcher.h"

namespace lockstep {

/// An argument given by its name.
struct NamedValue {
  std::string_view name;
  Value value;
};

/// Whether `value` may be an argument or a result of this type.
bool fits(const Type& type, const Value& value);

/// Every argument of `op` in schema order: the positional ones, those given by name, and defaults.
/// A number given for an `int[N]` stands for N of them; undefined tensors are absent ones. The
/// result borrows what `positional` and `named` borrow, and must not outlive them.
/// Throws DispatchError on an unknown or repeated name (with the nearest), on an argument that is
/// missing or one too many, and on a value that is not of the schema's type.
std::vector<Value> bind_arguments(const Operator& op, std::span<const Value> positional,
                                  std::span<const NamedValue> named = {});

/// Calls an operator with arguments as `bind_arguments` takes them. Returns its results, which own
/// what they hold.
std::vector<Value> call_values(const Operator& op, std::span<const Value> positional,
                               std::span<const NamedValue> named = {});

/// Calls any operator by its name: `call_op("my::scale_clamp", {x, 2.0}, {{"max", 6}})`. For
/// operators without a C++ function; the look-up costs a hash and a lock. The result is the
/// operator's only one, a tensor. Throws DispatchError when there is no such operator (with the
/// nearest name), as `bind_arguments` does, and when the result is not one tensor.
Tensor call_op(std::string_view name, std::initializer_list<Value> positional,
               std::initializer_list<NamedValue> named = {});

/// The same for operators with several results: each tensor, those of lists too; undefined where a
/// result is absent.
std::vector<Tensor> call_op_tensors(std::string_view name, std::initializer_list<Value> positional,
                                    std::initializer_list<NamedValue> named = {});

}  // namespace lockstep
