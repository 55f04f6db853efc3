#include "nn/module.h"

#include <algorithm>

namespace lockstep::nn {

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& found) const {
  for (const NamedParameter& parameter : own_) {
    const bool tied = std::any_of(found.begin(), found.end(), [&](const NamedParameter& other) {
      return other.tensor.is_same(parameter.tensor);
    });
    if (!tied) found.push_back({prefix + parameter.name, parameter.tensor});
  }
  for (const Child& child : children_) child.module->collect(prefix + child.name + ".", found);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> found;
  collect("", found);
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedParameter& parameter : named_parameters()) tensors.push_back(parameter.tensor);
  return tensors;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

void Module::train(bool on) {
  training_ = on;
  for (const Child& child : children_) child.module->train(on);
}

Tensor Module::register_parameter(std::string_view name, Tensor tensor) {
  tensor.set_requires_grad(true);
  own_.push_back({std::string(name), tensor});
  return tensor;
}

void Module::register_module(std::string_view name, Module& child) {
  children_.push_back({std::string(name), &child});
}

}  // namespace lockstep::nn
