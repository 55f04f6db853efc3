#include "optim/optimizer.h"

#include <set>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/phase.h"

namespace lockstep::optim {

void Optimizer::add_parameters(const ParameterList& parameters) {
  LS_CHECK(!parameters.empty(), Error,
           "[optim.{}] a group has no parameters: expected at least one, got none.", kind());
  size_t offset = 0;
  std::set<const TensorImpl*> known;
  std::set<std::string> names;
  for (const Group& group : groups_) {
    offset += group.parameters.size();
    for (const ParameterState& state : group.parameters) {
      known.insert(state.parameter.impl());
      names.insert(state.name);
    }
  }
  Group added;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    const std::string description = parameters.describe(i, offset);
    LS_CHECK(parameter.defined(), Error,
             "[optim.{}] {} is undefined: expected a leaf that requires grad.", kind(),
             description);
    LS_CHECK(
        parameter.is_leaf(), AutogradError,
        "[optim.{}] {} is no leaf: expected a parameter, got a computed tensor. Pass the tensors "
        "that it was computed from, or detach it.",
        kind(), description);
    LS_CHECK(parameter.requires_grad(), AutogradError,
             "[optim.{}] {} does not require grad: expected one that does. Leave out what is not "
             "trained, or call set_requires_grad() first.",
             kind(), description);
    LS_CHECK(known.insert(parameter.impl()).second, Error,
             "[optim.{}] {} is given twice: expected each parameter once, in one group.", kind(),
             description);
    std::string name = parameters.name(i);
    if (name.empty()) name = std::to_string(offset + i);
    LS_CHECK(
        names.insert(name).second, Error,
        "[optim.{}] two parameters are called \"{}\": expected different names, by which their "
        "state is saved. Put the module's name before one of them.",
        kind(), name);
    added.parameters.push_back({.name = std::move(name),
                                .description = description,
                                .parameter = parameter,
                                .tensors = std::vector<Tensor>(kind_.tensors.size()),
                                .numbers = std::vector<double>(kind_.numbers.size(), 1.0)});
  }
  groups_.push_back(std::move(added));
}

void Optimizer::step() {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  for (size_t group = 0; group < groups_.size(); ++group) {
    std::vector<ParameterState*> states;
    for (ParameterState& state : groups_[group].parameters) {
      if (!state.gradient().defined()) continue;
      ++state.steps;
      states.push_back(&state);
    }
    if (!states.empty()) update_group(group, states);
  }
}

IgnorableTensor Optimizer::step(const Closure& closure) {
  Tensor loss;
  {
    const EnableGradGuard enable_grad;
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) const {
  for (const Group& group : groups_) {
    for (const ParameterState& state : group.parameters) {
      reset_gradient(state.parameter, set_to_none);
    }
  }
}

void Optimizer::check_group(size_t group) const {
  LS_CHECK(group < groups_.size(), IndexError,
           "[optim.{}] no such group: expected a number below {}, got {}.", kind(), groups_.size(),
           group);
}

std::vector<Tensor> Optimizer::parameters(size_t group) const {
  check_group(group);
  std::vector<Tensor> parameters;
  for (const ParameterState& state : groups_[group].parameters) {
    parameters.push_back(state.parameter);
  }
  return parameters;
}

std::optional<double> Optimizer::find_option(std::string_view name, size_t group) const {
  check_group(group);
  for (const OptionValue& option : option_values(group)) {
    if (option.name == name) return option.value;
  }
  return std::nullopt;
}

void Optimizer::set_option(std::initializer_list<std::string_view> names, double value,
                           size_t group) {
  check_group(group);
  LS_CHECK(value == value, ConfigError, "[optim.{}] {} is NaN: expected a number.", kind(),
           *names.begin());
  for (const std::string_view name : names) {
    for (const OptionField& field : fields(group)) {
      if (field.name == name) return field.set(value);
    }
  }
}

double Optimizer::learning_rate(size_t group) const {
  return find_option("learning_rate", group).value();
}

void Optimizer::set_learning_rate(double rate, size_t group) {
  set_option({"learning_rate"}, rate, group);
}

void Optimizer::set_learning_rate(double rate) {
  for (size_t group = 0; group < groups_.size(); ++group) set_learning_rate(rate, group);
}

std::optional<double> Optimizer::initial_learning_rate(size_t group) const {
  check_group(group);
  return groups_[group].initial_learning_rate;
}

void Optimizer::set_initial_learning_rate(double rate, size_t group) {
  check_group(group);
  groups_[group].initial_learning_rate = rate;
}

std::optional<double> Optimizer::momentum(size_t group) const {
  const std::optional<double> beta = find_option("beta1", group);
  return beta ? beta : find_option("momentum", group);
}

void Optimizer::set_momentum(double value, size_t group) {
  set_option({"beta1", "momentum"}, value, group);
}

}  // namespace lockstep::optim
