#include "train/optimizer/learning_rate.h"

#include <cmath>
#include <numbers>

namespace lockstep::train {

double LearningRateSchedule::learning_rate(int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  if (kind == Kind::kConstant) return peak;
  const double minimum = peak * minimum_ratio;
  if (step >= decay_steps) return minimum;
  const double done =
      static_cast<double>(step - warmup_steps) / static_cast<double>(decay_steps - warmup_steps);
  return minimum + 0.5 * (1.0 + std::cos(std::numbers::pi * done)) * (peak - minimum);
}

}  // namespace lockstep::train
