#pragma once

#include <cstdint>
#include <optional>

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

/// Where a run has to end that is to cool down within `time_limit` seconds, if that must begin now:
/// if the limit leaves no time for one more step and the cool-down after it. A fiftieth of the
/// limit is kept back. Empty during warm-up, where the schedule's own end comes no later, and
/// without a limit or a cool-down that is shorter than the schedule, which is kWsd or kInverseSqrt.
std::optional<ScheduleEnd> end_to_begin_now(const LearningRateSchedule& schedule, double time_limit,
                                            const RunPace& pace);

/// The config of a run of those steps, without a time limit: it has the same bits.
config::RunConfig config_of_early_end(config::RunConfig config, ScheduleEnd end);

}  // namespace lockstep::train
