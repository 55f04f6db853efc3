#include "optim/adafactor.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/adafactor.h"

namespace lockstep::optim {

namespace {

enum AdafactorTensor : size_t { kRow, kColumn };

}  // namespace

std::vector<OptionField> fields_of(AdafactorOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"beta2_decay", &options.beta2_decay},
          {"epsilon1", &options.epsilon1, OptionRange::kPositive},
          {"epsilon2", &options.epsilon2, OptionRange::kPositive},
          {"clip", &options.clip, OptionRange::kPositive},
          {"weight_decay", &options.weight_decay, OptionRange::kNotNegative},
          {"maximize", &options.maximize}};
}

void check(const char* kind, AdafactorOptions options) {
  check_ranges(kind, fields_of(options));
  LS_CHECK(options.beta2_decay <= 0, ConfigError,
           "[optim.{}] beta2_decay is {}: expected 0 or less.", kind, options.beta2_decay);
}

Adafactor::Adafactor(const ParameterList& parameters, const AdafactorOptions& options)
    : OptimizerWith({.name = "Adafactor", .tensors = {"exp_avg_sq_row", "exp_avg_sq_col"}},
                    parameters, options) {}

Dims Adafactor::state_sizes(const Tensor& parameter, size_t tensor) const {
  return tensor == kRow ? adafactor_row_sizes(parameter.sizes())
                        : adafactor_column_sizes(parameter.sizes());
}

void Adafactor::update(ParameterStates states, const AdafactorOptions& options) {
  const AdafactorRule rule{.learning_rate = options.learning_rate,
                           .beta2_decay = options.beta2_decay,
                           .epsilon1 = options.epsilon1,
                           .epsilon2 = options.epsilon2,
                           .clip = options.clip,
                           .weight_decay = options.weight_decay};
  for (ParameterState* const each : states) {
    const Tensor& parameter = each->parameter;
    const size_t count = parameter.dim() >= 2 ? 2 : 1;
    for (size_t i = 0; i < count; ++i) {
      if (each->tensors[i].defined()) continue;
      each->tensors[i] = zeros(state_sizes(parameter, i), parameter.options());
    }
    const Tensor step = full({}, each->steps, {DType::kF64, parameter.device()});
    adafactor_(parameter, each->gradient(), {each->tensors[kRow], each->tensors[kColumn]}, step,
               rule, options.maximize ? -1.0 : 1.0);
  }
}

}  // namespace lockstep::optim
