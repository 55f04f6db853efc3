#pragma once

#include <fmt/format.h>

#include <string>

#include "train/trainer.h"

namespace lockstep::train {

/// All results of a step except times, as text.
inline std::string text_of(const StepResult& step) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}\n", step.step, step.loss, step.grad_norm,
                     step.learning_rate, step.tokens, step.loss_scale, step.outcome.finite,
                     step.outcome.overflowed, step.non_finite, step.stop);
}

/// All state of a trainer on any device, but its position.
inline std::string state_on_cpu(Trainer& trainer) {
  std::string bytes;
  const auto add = [&](const Tensor& tensor) {
    const Tensor here = tensor.to(kCPU);
    bytes.append(static_cast<const char*>(here.data()), here.nbytes());
  };
  for (const nn::StoredParameter& each : trainer.task().model().stored_parameters()) {
    add(each.tensor);
  }
  for (const nn::StoredParameter& each : trainer.optimizer().state()) add(each.tensor);
  const GradScalerState scale = trainer.scaler().state();
  return bytes +
         fmt::format("{} {} {}", trainer.optimizer().steps(), scale.scale, scale.growth_tracker);
}

}  // namespace lockstep::train
