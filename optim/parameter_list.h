#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "nn/state_dict.h"

namespace lockstep::optim {

/// The parameters that a function of this room takes: `model.parameters()`,
/// `model.named_parameters()`, or tensors in braces. Errors name a parameter by its name where it
/// is known ("parameter fc1.weight"), and else by its number ("parameter 3").
class ParameterList {
 public:
  ParameterList(const std::vector<Tensor>& parameters);
  ParameterList(std::vector<nn::NamedParameter> parameters) : entries_(std::move(parameters)) {}
  ParameterList(std::initializer_list<Tensor> parameters);

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Tensor& operator[](size_t i) const { return entries_[i].tensor; }
  /// The name of the i-th; "" if it is not known.
  const std::string& name(size_t i) const { return entries_[i].name; }
  /// How errors call the i-th, if the first of this list has number `offset`.
  std::string describe(size_t i, size_t offset = 0) const;

 private:
  std::vector<nn::NamedParameter> entries_;
};

/// Removes the gradient of a parameter; with `set_to_none` false fills it with zeros instead, if
/// there is one.
void reset_gradient(const Tensor& parameter, bool set_to_none);

}  // namespace lockstep::optim
