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

/// Returns every argument of `op` in schema order: positional ones, named ones, and defaults.
/// A number given for an `int[N]` is repeated N times; an undefined tensor counts as absent. The
/// result borrows what `positional` and `named` borrow, and must not outlive them.
/// Throws DispatchError on an unknown name (naming the nearest) or a repeated one, on a missing or
/// surplus argument, and on a value that does not have the schema's type.
std::vector<Value> bind_arguments(const Operator& op, std::span<const Value> positional,
                                  std::span<const NamedValue> named = {});

/// Calls an operator with arguments as `bind_arguments` takes them. Returns its results, which own
/// what they hold.
std::vector<Value> call_values(const Operator& op, std::span<const Value> positional,
                               std::span<const NamedValue> named = {});

/// Calls any operator by its name: `call_op("my::scale_clamp", {x, 2.0}, {{"max", 6}})`. For
/// operators without a C++ function; the look-up costs a hash and a lock. Returns the operator's
/// only result, which must be a tensor. Throws DispatchError when there is no such operator (naming
/// the nearest), when the result is not one tensor, and whatever `bind_arguments` throws.
Tensor call_op(std::string_view name, std::initializer_list<Value> positional,
               std::initializer_list<NamedValue> named = {});

/// `call_op` for operators with several results. Returns all result tensors, with lists flattened;
/// an absent result is an undefined tensor.
std::vector<Tensor> call_op_tensors(std::string_view name, std::initializer_list<Value> positional,
                                    std::initializer_list<NamedValue> named = {});

}  // namespace lockstep
