#pragma once

#include <cstdint>

namespace lockstep::train {

/// The end of a schedule that cools down.
struct ScheduleEnd {
  int64_t steps = 0;           ///< all steps, which LearningRateSchedule::decay_steps is
  int64_t cooldown_steps = 0;  ///< the last of them
  friend bool operator==(const ScheduleEnd&, const ScheduleEnd&) = default;
};

/// How the learning rate moves. Steps count from 0.
struct LearningRateSchedule {
  enum class Kind : uint8_t { kCosine, kConstant, kLinear, kWsd, kInverseSqrt };
  Kind kind = Kind::kCosine;
  double peak = 3e-4;        ///< rate after warm-up
  int64_t warmup_steps = 0;  ///< rises linearly from peak / warmup_steps to peak
  int64_t decay_steps = 0;   ///< step at which all but kConstant reach their minimum
  /// kWsd and kInverseSqrt fall to the minimum over so many steps before decay_steps.
  int64_t cooldown_steps = 0;
  double minimum_ratio = 0.1;  ///< minimum as a fraction of peak

  /// Learning rate of step `step`. After decay_steps it stays at the minimum. kWsd is constant,
  /// kInverseSqrt is peak * sqrt(w / (step + 1)) with w = max(warmup_steps, 1) (Vaswani et al.
  /// 2017) and at least the minimum; both then fall as 1 - sqrt(share done) (Hägele et al. 2024).
  double learning_rate(int64_t step) const;
  /// Whether it falls at its end alone, over cooldown_steps.
  bool cools_down() const { return kind == Kind::kWsd || kind == Kind::kInverseSqrt; }

  /// Where this schedule ends if it cools down from step `step` on, over the share of all steps
  /// that `cooldown_steps` are of `decay_steps`. For kWsd and kInverseSqrt with fewer
  /// cooldown_steps than decay_steps.
  ScheduleEnd end_if_cooled_from(int64_t step) const;
};

}  // namespace lockstep::train
