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
      cools_down() ? std::max(warmup_steps, decay_steps - cooldown_steps) : warmup_steps;
  const auto before = [&](int64_t at) {
    if (kind != Kind::kInverseSqrt) return peak;
    const auto risen = static_cast<double>(std::max<int64_t>(warmup_steps, 1));
    return std::max(minimum, peak * std::sqrt(risen / static_cast<double>(at + 1)));
  };
  if (step < first) return before(step);
  const double done = static_cast<double>(step - first) / static_cast<double>(decay_steps - first);
  const double left = cools_down()            ? 1.0 - std::sqrt(done)
                      : kind == Kind::kLinear ? 1.0 - done
                                              : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return minimum + left * (before(first) - minimum);
}

ScheduleEnd LearningRateSchedule::end_if_cooled_from(int64_t step) const {
  // The least number of steps of which so many are left before the cool-down: the division rounds
  // as that of the default for cooldown_steps does.
  const double share = static_cast<double>(cooldown_steps) / static_cast<double>(decay_steps);
  auto steps = static_cast<int64_t>(static_cast<double>(step) / (1 - share));
  const auto cooldown_of = [&](int64_t all) {
    return static_cast<int64_t>(static_cast<__int128>(all) * cooldown_steps / decay_steps);
  };
  while (steps > step && steps - cooldown_of(steps) > step) --steps;
  while (steps - cooldown_of(steps) < step) ++steps;
  return {steps, cooldown_of(steps)};
}

}  // namespace lockstep::train
