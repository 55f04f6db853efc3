#include "optim/radam.h"

#include <cmath>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

enum RAdamTensor : size_t { kRAdamMean, kRAdamSquare };

void single_radam(ParameterState& state, const RAdamOptions& options) {
  const auto step = static_cast<double>(state.steps);
  const bool decoupled = options.decoupled_weight_decay;
  if (decoupled && options.weight_decay != 0) {
    mul_(state.parameter, 1 - options.learning_rate * options.weight_decay);
  }
  const Tensor gradient =
      effective_gradient(state, decoupled ? 0 : options.weight_decay, options.maximize);
  const Tensor& mean = state.tensor(kRAdamMean);
  const Tensor& square = state.tensor(kRAdamSquare);
  lerp_(mean, gradient, 1 - options.beta1);
  addcmul_(mul_(square, options.beta2), gradient, gradient, 1 - options.beta2);

  const double power = std::pow(options.beta2, step);
  const double longest = 2 / (1 - options.beta2) - 1;
  const double length = longest - 2 * step * power / (1 - power);
  const double step_size = options.learning_rate / (1 - std::pow(options.beta1, step));
  if (length <= 5) {
    state.parameter.add_(mean, -step_size);
    return;
  }
  const double rectified =
      std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  const Tensor root = add_(sqrt(square), options.epsilon);
  addcdiv_(state.parameter, mean, root, -step_size * rectified * std::sqrt(1 - power));
}

}  // namespace

std::vector<OptionField> fields_of(RAdamOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"beta1", &options.beta1, OptionRange::kBelowOne},
          {"beta2", &options.beta2, OptionRange::kBelowOne},
          {"epsilon", &options.epsilon, OptionRange::kNotNegative},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"decoupled_weight_decay", &options.decoupled_weight_decay},
          {"maximize", &options.maximize}};
}

void check(const char* kind, RAdamOptions options) { check_ranges(kind, fields_of(options)); }

RAdam::RAdam(const ParameterList& parameters, const RAdamOptions& options)
    : OptimizerWith({.name = "RAdam", .tensors = {"exp_avg", "exp_avg_sq"}}, parameters, options) {}

void RAdam::update(ParameterStates states, const RAdamOptions& options) {
  for (ParameterState* const state : states) single_radam(*state, options);
}

}  // namespace lockstep::optim
