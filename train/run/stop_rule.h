#pragma once

#include <cstdint>

namespace lockstep::train {

/// Why a run ended.
enum class RunEnd {
  kFinished,    ///< all steps done
  kTimeBudget,  ///< the config's train.time_limit_seconds; counts as finished
  kNoProgress,  ///< train.early_stopping; counts as finished
  kStopped,     ///< asked to stop; everything is saved, and training goes on when started again
  kRegrouped,   ///< ranks were lost or join, and training is to go on (train/run/elastic.h)
};

/// Whether what is done every `every` steps (0: never) is due after so many.
constexpr bool is_due(int64_t steps_done, int64_t every) {
  return every > 0 && steps_done % every == 0;
}

/// Tells when a run ends. Times are seconds of this process since the run began in it. A plain
/// value.
struct StopRule {
  int64_t steps = 0;       ///< train.steps
  double time_budget = 0;  ///< after which the run counts as finished; 0: none
  double time_limit = 0;   ///< by which the run must have stopped, to be continued; 0: none

  bool all_steps_done(int64_t steps_done) const { return steps_done >= steps; }
  /// Whether training is over after so many steps.
  bool is_over(int64_t steps_done, double elapsed) const {
    return all_steps_done(steps_done) || (time_budget > 0 && elapsed >= time_budget);
  }
  /// Whether one more step and the checkpoint after it, which take `next_seconds` together, no
  /// longer fit into the time limit.
  bool is_out_of_time(double elapsed, double next_seconds) const {
    return time_limit > 0 && elapsed + next_seconds >= time_limit;
  }
  /// How a run ends that is over after so many steps.
  RunEnd end_after(int64_t steps_done) const {
    return all_steps_done(steps_done) ? RunEnd::kFinished : RunEnd::kTimeBudget;
  }
};

}  // namespace lockstep::train
