#include "train/optimizer/learning_rate.h"

#include <algorithm>
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
  const int64_t first =
      kind == Kind::kWsd ? std::max(warmup_steps, decay_steps - cooldown_steps) : warmup_steps;
  if (step < first) return peak;
  const double done = static_cast<double>(step - first) / static_cast<double>(decay_steps - first);
  const double left = kind == Kind::kWsd      ? 1.0 - std::sqrt(done)
                      : kind == Kind::kLinear ? 1.0 - done
                                              : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return minimum + left * (peak - minimum);
}

}  // namespace lockstep::train
