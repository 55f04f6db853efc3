#include "train/step_outcome.h"

#include <cmath>

namespace lockstep::train {

StepOutcome outcome_of(const StepNumbers& numbers, const OutcomeRule& rule) {
  const bool loss_is_finite = std::isfinite(numbers.loss);
  const bool norm_is_finite = std::isfinite(numbers.grad_norm);
  StepOutcome outcome;
  outcome.overflowed = loss_is_finite && !norm_is_finite && rule.can_back_off(numbers.loss_scale);
  outcome.finite = loss_is_finite && (norm_is_finite || outcome.overflowed);
  outcome.spoiled = rule.updates_early && !outcome.finite;
  return outcome;
}

}  // namespace lockstep::train
