#include "optim/adagrad.h"

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

constexpr size_t kSumOfSquares = 0;

void single_adagrad(ParameterState& state, const AdagradOptions& options) {
  const Tensor gradient = effective_gradient(state, options.weight_decay, options.maximize);
  Tensor& sum = state.tensors[kSumOfSquares];
  if (!sum.defined()) sum = full_like(state.parameter, options.initial_accumulator_value);
  addcmul_(sum, gradient, gradient);
  const Tensor root = add_(sqrt(sum), options.epsilon);
  const auto before = static_cast<double>(state.steps - 1);
  addcdiv_(state.parameter, gradient, root,
           -options.learning_rate / (1 + before * options.lr_decay));
}

}  // namespace

std::vector<OptionField> fields_of(AdagradOptions& options) {
  return {
      {"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
      {"lr_decay", &options.lr_decay, OptionRange::kNotNegative},
      {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
      {"initial_accumulator_value", &options.initial_accumulator_value, OptionRange::kNotNegative},
      {"epsilon", &options.epsilon, OptionRange::kNotNegative},
      {"maximize", &options.maximize}};
}

void check(const char* kind, AdagradOptions options) { check_ranges(kind, fields_of(options)); }

Adagrad::Adagrad(const ParameterList& parameters, const AdagradOptions& options)
    : OptimizerWith({.name = "Adagrad", .tensors = {"sum"}}, parameters, options) {}

void Adagrad::update(ParameterStates states, const AdagradOptions& options) {
  for (ParameterState* const state : states) single_adagrad(*state, options);
}

}  // namespace lockstep::optim
