#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "train/optimizer/learning_rate.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// The pace of a run, between two steps.
struct RunPace {
  int64_t steps_done = 0;
  double elapsed = 0;       ///< seconds that count towards the time limit
  double step_seconds = 0;  ///< a step with its share of evaluations and checkpoints
};

/// Measures a run's pace, from step `first` on: in the first steps of a process memory is taken
/// from the system.
class PaceWatch {
 public:
  explicit PaceWatch(int64_t first) : first_(first) {}
  /// To be called after each step. Returns the seconds of a step since it was called after `first`
  /// steps or, in a run that goes on, for the first time; nothing without a step since then.
  std::optional<double> step_seconds(int64_t steps_done);

 private:
  using Clock = std::chrono::steady_clock;
  int64_t first_;
  std::optional<Clock::time_point> began_;
};

/// Where a run has to end so that its schedule falls within `time_limit` seconds, if that must be
/// settled now; empty where the schedule's own end comes no later.
/// - kWsd and kInverseSqrt: once the limit leaves no time for one more step and the cool-down after
///   it. A fiftieth of the limit is kept back. Not during warm-up, and not without a cool-down that
///   is shorter than the schedule.
/// - kCosine and kLinear: at the end of warm-up. A twenty-fifth is kept back; a run that becomes
///   slower is cut off near its end, where the rate is low.
/// The rates of steps that were done are those of the schedule that is returned.
std::optional<ScheduleEnd> early_end(const LearningRateSchedule& schedule, double time_limit,
                                     const RunPace& pace);

/// The config of a run of those steps, without a time limit: it has the same bits.
config::RunConfig config_of_early_end(config::RunConfig config, ScheduleEnd end);

/// The text of the config of a run that may end early.
std::string text_of_run(const config::RunConfig& config, const std::optional<ScheduleEnd>& end);

}  // namespace lockstep::train
