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
  const bool cools_down = kind == Kind::kWsd || kind == Kind::kInverseSqrt;
  const int64_t first =
      cools_down ? std::max(warmup_steps, decay_steps - cooldown_steps) : warmup_steps;
  const auto before = [&](int64_t at) {
    if (kind != Kind::kInverseSqrt) return peak;
    const auto risen = static_cast<double>(std::max<int64_t>(warmup_steps, 1));
    return std::max(minimum, peak * std::sqrt(risen / static_cast<double>(at + 1)));
  };
  if (step < first) return before(step);
  const double done = static_cast<double>(step - first) / static_cast<double>(decay_steps - first);
  const double left = cools_down              ? 1.0 - std::sqrt(done)
                      : kind == Kind::kLinear ? 1.0 - done
                                              : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return minimum + left * (before(first) - minimum);
}

}  // namespace lockstep::train
