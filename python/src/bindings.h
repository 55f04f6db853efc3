#pragma once

#include <lockstep/lockstep.h>
#include <nanobind/nanobind.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// As nanobind's own names: nothing else links against the module.
#pragma GCC visibility push(hidden)

namespace lockstep::python {

namespace nb = nanobind;

// One function for each topic; module.cc calls them all.
void bind_errors(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_dlpack(nb::module_& module, nb::class_<Tensor>& tensor);
void bind_index(nb::class_<Tensor>& tensor);
void bind_operators(nb::module_& module, nb::class_<Tensor>& tensor);
void bind_files(nb::module_& module);
void bind_function(nb::module_& module);

/// What the Values of a call borrow: objects converted from Python, and the Python objects whose
/// tensors they are.
struct Kept {
  std::deque<std::pair<nb::handle, Tensor>> tensors;
  std::deque<std::vector<Tensor>> tensor_lists;
  std::deque<std::vector<int64_t>> integers;
  std::deque<std::vector<double>> numbers;
  std::deque<std::string> texts;
};

/// `object` as an argument of this type; nothing if it is none. The Value borrows from `kept`.
std::optional<Value> value_from(const Argument& argument, nb::handle object, Kept& kept);
/// A result as Python knows it. A tensor that was an argument is the argument's object.
nb::object object_from(Value& value, const Kept& kept);
/// None for an undefined tensor.
nb::object object_from(Tensor tensor);

/// A Tensor, or a tensor over the memory of any other object that has `__dlpack__`; nothing for
/// other objects.
std::optional<Tensor> tensor_from_object(nb::handle object);
/// The same, but throws TypeError naming `function` for other objects.
Tensor require_tensor(const char* function, nb::handle object);
/// `copy` is what Python's `from_dlpack` calls so.
Tensor tensor_from_dlpack(nb::handle object, std::optional<bool> copy);

/// Calls the overload of an operator that takes these arguments, without the GIL.
nb::object call_operator(const std::string& name, std::span<const nb::handle> positional,
                         std::span<const std::pair<std::string, nb::handle>> named = {});

}  // namespace lockstep::python

#pragma GCC visibility pop
