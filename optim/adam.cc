#include "optim/adam.h"

#include <cmath>

#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"

namespace lockstep::optim {

namespace {

enum AdamTensor : size_t { kMean, kSquare, kMaxSquare };

/// Options of both, and how weights decay.
struct AdamRule {
  AdamOptions options;
  bool decoupled;
};

template <class Options>
std::vector<OptionField> adam_fields(Options& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"beta1", &options.beta1, OptionRange::kBelowOne},
          {"beta2", &options.beta2, OptionRange::kBelowOne},
          {"epsilon", &options.epsilon, OptionRange::kNotNegative},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"amsgrad", &options.amsgrad},
          {"maximize", &options.maximize}};
}

/// Updates parameters that have taken part in the same number of steps.
void fused_adam(ParameterStates states, const AdamRule& rule) {
  const AdamOptions& options = rule.options;
  // The operator's decay is decoupled: the other one goes into the gradients first.
  const bool decay_gradients = !rule.decoupled && options.weight_decay != 0;
  std::vector<Tensor> gradients = gradients_of(states);
  if (decay_gradients) {
    for (size_t i = 0; i < states.size(); ++i) {
      gradients[i] = effective_gradient(*states[i], options.weight_decay, options.maximize);
    }
  }
  const Tensor step = full({}, states[0]->steps, {DType::kF64, states[0]->parameter.device()});
  _fused_adamw_(parameters_of(states), gradients, tensors_of(states, kMean),
                tensors_of(states, kSquare), options.learning_rate, options.beta1, options.beta2,
                rule.decoupled ? options.weight_decay : 0.0, options.epsilon, step,
                options.maximize && !decay_gradients ? -1.0 : 1.0);
}

void single_adam(ParameterState& state, const AdamRule& rule) {
  const AdamOptions& options = rule.options;
  const auto step = static_cast<double>(state.steps);
  if (rule.decoupled) mul_(state.parameter, 1 - options.learning_rate * options.weight_decay);
  const Tensor gradient =
      effective_gradient(state, rule.decoupled ? 0 : options.weight_decay, options.maximize);
  const Tensor& mean = state.tensor(kMean);
  const Tensor& square = state.tensor(kSquare);
  lerp_(mean, gradient, 1 - options.beta1);
  addcmul_(mul_(square, options.beta2), gradient, gradient, 1 - options.beta2);
  Tensor largest = square;
  if (options.amsgrad) {
    largest = maximum(state.tensor(kMaxSquare), square);
    state.tensors[kMaxSquare] = largest;
  }
  const double correction = std::sqrt(1 - std::pow(options.beta2, step));
  const Tensor root = add_(div_(sqrt(largest), correction), options.epsilon);
  const double step_size = options.learning_rate / (1 - std::pow(options.beta1, step));
  addcdiv_(state.parameter, mean, root, -step_size);
}

void update_adam(ParameterStates states, const AdamRule& rule) {
  if (rule.options.amsgrad) {
    for (ParameterState* const state : states) single_adam(*state, rule);
    return;
  }
  const UpdateBatches batches = divide(states, /*by_steps=*/true);
  for (const auto& batch : batches.fused) fused_adam(batch, rule);
  for (ParameterState* const state : batches.single) single_adam(*state, rule);
}

}  // namespace

std::vector<OptionField> fields_of(AdamOptions& options) { return adam_fields(options); }
std::vector<OptionField> fields_of(AdamWOptions& options) { return adam_fields(options); }

void check(const char* kind, AdamOptions options) { check_ranges(kind, fields_of(options)); }
void check(const char* kind, AdamWOptions options) { check_ranges(kind, fields_of(options)); }

Adam::Adam(const ParameterList& parameters, const AdamOptions& options)
    : OptimizerWith({.name = "Adam", .tensors = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
                    parameters, options) {}

void Adam::update(ParameterStates states, const AdamOptions& options) {
  update_adam(states, {options, /*decoupled=*/false});
}

AdamW::AdamW(const ParameterList& parameters, const AdamWOptions& options)
    : OptimizerWith({.name = "AdamW", .tensors = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
                    parameters, options) {}

void AdamW::update(ParameterStates states, const AdamWOptions& options) {
  update_adam(states, {{.learning_rate = options.learning_rate,
                        .beta1 = options.beta1,
                        .beta2 = options.beta2,
                        .epsilon = options.epsilon,
                        .weight_decay = options.weight_decay,
                        .amsgrad = options.amsgrad,
                        .maximize = options.maximize},
                       /*decoupled=*/true});
}

}  // namespace lockstep::optim
