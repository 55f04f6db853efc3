#include "optim/lion.h"

#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

constexpr size_t kExpAvg = 0;

void fused_lion(ParameterStates states, const LionOptions& options) {
  _fused_lion_(parameters_of(states), gradients_of(states), tensors_of(states, kExpAvg),
               options.learning_rate, options.beta1, options.beta2, options.weight_decay,
               options.maximize ? -1.0 : 1.0);
}

void single_lion(ParameterState& state, const LionOptions& options) {
  const Tensor gradient = effective_gradient(state, 0, options.maximize);
  const Tensor& mean = state.tensor(kExpAvg);
  const Tensor direction = sign(lerp(mean, gradient, 1 - options.beta1));
  mul_(state.parameter, 1 - options.learning_rate * options.weight_decay);
  state.parameter.add_(direction, -options.learning_rate);
  lerp_(mean, gradient, 1 - options.beta2);
}

}  // namespace

std::vector<OptionField> fields_of(LionOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"beta1", &options.beta1, OptionRange::kBelowOne},
          {"beta2", &options.beta2, OptionRange::kBelowOne},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"maximize", &options.maximize}};
}

void check(const char* kind, LionOptions options) { check_ranges(kind, fields_of(options)); }

Lion::Lion(const ParameterList& parameters, const LionOptions& options)
    : OptimizerWith({.name = "Lion", .tensors = {"exp_avg"}}, parameters, options) {}

void Lion::update(ParameterStates states, const LionOptions& options) {
  const UpdateBatches batches = divide(states, /*by_steps=*/false);
  for (const auto& batch : batches.fused) fused_lion(batch, options);
  for (ParameterState* const state : batches.single) single_lion(*state, options);
}

}  // namespace lockstep::optim
