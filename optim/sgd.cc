#include "optim/sgd.h"

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"

namespace lockstep::optim {

namespace {

constexpr size_t kMomentumBuffer = 0;

void fused_sgd(ParameterStates states, const SGDOptions& options) {
  std::vector<Tensor> buffers;
  if (options.momentum != 0) buffers = tensors_of(states, kMomentumBuffer);
  _fused_sgd_(parameters_of(states), gradients_of(states), buffers, options.learning_rate,
              options.momentum, options.nesterov, options.weight_decay,
              options.maximize ? -1.0 : 1.0);
}

void single_sgd(ParameterState& state, const SGDOptions& options) {
  Tensor direction = effective_gradient(state, options.weight_decay, options.maximize);
  if (options.momentum != 0) {
    Tensor& buffer = state.tensors[kMomentumBuffer];
    if (buffer.defined()) {
      add_(mul_(buffer, options.momentum), direction, 1 - options.dampening);
    } else {
      buffer = clone(direction);
    }
    direction = options.nesterov ? add(direction, buffer, options.momentum) : buffer;
  }
  state.parameter.add_(direction, -options.learning_rate);
}

}  // namespace

std::vector<OptionField> fields_of(SGDOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"momentum", &options.momentum, OptionRange::kNotNegative},
          {"dampening", &options.dampening},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"nesterov", &options.nesterov},
          {"maximize", &options.maximize}};
}

void check(const char* kind, SGDOptions options) {
  check_ranges(kind, fields_of(options));
  LS_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0), ConfigError,
           "[optim.{}] nesterov needs momentum above 0 and no dampening, got momentum {} and "
           "dampening {}.",
           kind, options.momentum, options.dampening);
}

SGD::SGD(const ParameterList& parameters, const SGDOptions& options)
    : OptimizerWith({.name = "SGD", .tensors = {"momentum_buffer"}}, parameters, options) {}

void SGD::update(ParameterStates states, const SGDOptions& options) {
  if (options.momentum != 0 && options.dampening != 0) {
    for (ParameterState* const state : states) single_sgd(*state, options);
    return;
  }
  const UpdateBatches batches = divide(states, /*by_steps=*/false);
  for (const auto& batch : batches.fused) fused_sgd(batch, options);
  for (ParameterState* const state : batches.single) single_sgd(*state, options);
}

}  // namespace lockstep::optim
