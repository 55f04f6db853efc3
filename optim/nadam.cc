#include "optim/nadam.h"

#include <cmath>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

enum NAdamTensor : size_t { kNAdamMean, kNAdamSquare };

void single_nadam(ParameterState& state, const NAdamOptions& options) {
  const double rate = options.learning_rate;
  const auto step = static_cast<double>(state.steps);
  const bool decoupled = options.decoupled_weight_decay;
  if (decoupled && options.weight_decay != 0) {
    mul_(state.parameter, 1 - rate * options.weight_decay);
  }
  const Tensor gradient =
      effective_gradient(state, decoupled ? 0 : options.weight_decay, options.maximize);
  const auto mu = [&](double at) {
    return options.beta1 * (1 - 0.5 * std::pow(0.96, at * options.momentum_decay));
  };
  double& product = state.numbers[0];
  product *= mu(step);
  const double next_product = product * mu(step + 1);

  const Tensor& mean = state.tensor(kNAdamMean);
  const Tensor& square = state.tensor(kNAdamSquare);
  lerp_(mean, gradient, 1 - options.beta1);
  addcmul_(mul_(square, options.beta2), gradient, gradient, 1 - options.beta2);
  const double correction = 1 - std::pow(options.beta2, step);
  const Tensor root = add_(sqrt(div(square, correction)), options.epsilon);
  addcdiv_(state.parameter, gradient, root, -rate * (1 - mu(step)) / (1 - product));
  addcdiv_(state.parameter, mean, root, -rate * mu(step + 1) / (1 - next_product));
}

}  // namespace

std::vector<OptionField> fields_of(NAdamOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"beta1", &options.beta1, OptionRange::kBelowOne},
          {"beta2", &options.beta2, OptionRange::kBelowOne},
          {"epsilon", &options.epsilon, OptionRange::kNotNegative},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"momentum_decay", &options.momentum_decay, OptionRange::kNotNegative},
          {"decoupled_weight_decay", &options.decoupled_weight_decay},
          {"maximize", &options.maximize}};
}

void check(const char* kind, NAdamOptions options) { check_ranges(kind, fields_of(options)); }

NAdam::NAdam(const ParameterList& parameters, const NAdamOptions& options)
    : OptimizerWith(
          {.name = "NAdam", .tensors = {"exp_avg", "exp_avg_sq"}, .numbers = {"mu_product"}},
          parameters, options) {}

void NAdam::update(ParameterStates states, const NAdamOptions& options) {
  for (ParameterState* const state : states) single_nadam(*state, options);
}

}  // namespace lockstep::optim
