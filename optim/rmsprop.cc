#include "optim/rmsprop.h"

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

enum RMSpropTensor : size_t { kSquareAverage, kRmsMomentum, kGradientAverage };

void single_rmsprop(ParameterState& state, const RMSpropOptions& options) {
  const Tensor gradient = effective_gradient(state, options.weight_decay, options.maximize);
  const Tensor& square = state.tensor(kSquareAverage);
  addcmul_(mul_(square, options.alpha), gradient, gradient, 1 - options.alpha);
  Tensor variance = square;
  if (options.centered) {
    const Tensor& mean = state.tensor(kGradientAverage);
    lerp_(mean, gradient, 1 - options.alpha);
    variance = addcmul(square, mean, mean, -1);
  }
  const Tensor root = add_(sqrt(variance), options.epsilon);
  if (options.momentum > 0) {
    const Tensor& buffer = state.tensor(kRmsMomentum);
    addcdiv_(mul_(buffer, options.momentum), gradient, root);
    state.parameter.add_(buffer, -options.learning_rate);
  } else {
    addcdiv_(state.parameter, gradient, root, -options.learning_rate);
  }
}

}  // namespace

std::vector<OptionField> fields_of(RMSpropOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"alpha", &options.alpha, OptionRange::kNotNegative},
          {"epsilon", &options.epsilon, OptionRange::kNotNegative},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"momentum", &options.momentum, OptionRange::kNotNegative},
          {"centered", &options.centered},
          {"maximize", &options.maximize}};
}

void check(const char* kind, RMSpropOptions options) { check_ranges(kind, fields_of(options)); }

RMSprop::RMSprop(const ParameterList& parameters, const RMSpropOptions& options)
    : OptimizerWith({.name = "RMSprop", .tensors = {"square_avg", "momentum_buffer", "grad_avg"}},
                    parameters, options) {}

void RMSprop::update(ParameterStates states, const RMSpropOptions& options) {
  for (ParameterState* const state : states) single_rmsprop(*state, options);
}

}  // namespace lockstep::optim
