#include "optim/adadelta.h"

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

enum AdadeltaTensor : size_t { kSquaresOfGradients, kSquaresOfSteps };

void single_adadelta(ParameterState& state, const AdadeltaOptions& options) {
  const Tensor gradient = effective_gradient(state, options.weight_decay, options.maximize);
  const Tensor& squares = state.tensor(kSquaresOfGradients);
  const Tensor& steps = state.tensor(kSquaresOfSteps);
  addcmul_(mul_(squares, options.rho), gradient, gradient, 1 - options.rho);
  const Tensor root = sqrt(add(squares, options.epsilon));
  const Tensor delta = mul_(div_(sqrt(add(steps, options.epsilon)), root), gradient);
  addcmul_(mul_(steps, options.rho), delta, delta, 1 - options.rho);
  state.parameter.add_(delta, -options.learning_rate);
}

}  // namespace

std::vector<OptionField> fields_of(AdadeltaOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"rho", &options.rho, OptionRange::kUpToOne},
          {"epsilon", &options.epsilon, OptionRange::kNotNegative},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"maximize", &options.maximize}};
}

void check(const char* kind, AdadeltaOptions options) { check_ranges(kind, fields_of(options)); }

Adadelta::Adadelta(const ParameterList& parameters, const AdadeltaOptions& options)
    : OptimizerWith({.name = "Adadelta", .tensors = {"square_avg", "acc_delta"}}, parameters,
                    options) {}

void Adadelta::update(ParameterStates states, const AdadeltaOptions& options) {
  for (ParameterState* const state : states) single_adadelta(*state, options);
}

}  // namespace lockstep::optim
