#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/dispatch/value.h"

namespace lockstep {

/// Calls visit(tensor) for the tensor that a value is, or for each of the list that it is,
/// undefined ones among them. Values of other types have none.
template <class F>
void each_tensor(const Value& value, F&& visit) {
  if (value.is_tensor()) {
    visit(value.tensor());
  } else if (value.is_tensor_list()) {
    for (const Tensor& tensor : value.tensors()) visit(tensor);
  }
}

/// The same without undefined tensors.
template <class F>
void each_defined_tensor(const Value& value, F&& visit) {
  each_tensor(value, [&](const Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
  });
}

/// The value with map(tensor) in place of each tensor that it is or has; undefined ones stay so,
/// and values of other types stay as they are.
template <class F>
Value map_tensors(const Value& value, F&& map) {
  const auto mapped = [&](const Tensor& tensor) {
    return tensor.defined() ? Tensor(map(tensor)) : Tensor();
  };
  if (value.is_tensor()) return Value(mapped(value.tensor()));
  if (!value.is_tensor_list()) return value;
  std::vector<Tensor> list;
  list.reserve(value.tensors().size());
  for (const Tensor& tensor : value.tensors()) list.push_back(mapped(tensor));
  return Value(std::move(list));
}

/// The same for all values of a call.
template <class F>
std::vector<Value> map_tensors(std::span<const Value> values, F&& map) {
  std::vector<Value> mapped;
  mapped.reserve(values.size());
  for (const Value& value : values) mapped.push_back(map_tensors(value, map));
  return mapped;
}

}  // namespace lockstep
