#pragma once

#include <cstdint>

#include "dist/simulate/simulated_step.h"
#include "dist/simulate/step_work.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Counts what the last of `ranks` ranks computes in a step of a resolved config: times of the
/// result are the floating-point operations that operators declare, and `update` is 0. Runs one
/// micro-batch on the meta device, as plan_run does, under the same conditions.
dist::StepWork count_work(const config::RunConfig& config, int64_t ranks);

/// A rank's step without communication as it was measured, in seconds.
struct MeasuredWork {
  double step = 0;         ///< all of it
  double update = 0;       ///< part of it after the last backward
  double first_ready = 0;  ///< until the first gradients of the last backward; 0: not measured
};
/// Shares measured time out by counted operations. Throws ConfigError if none were counted.
dist::StepWork timed_work(const dist::StepWork& counted, const MeasuredWork& measured);

/// How a resolved config with a parallel.strategy other than DDP divides its model.
dist::ShardingWork sharding_work(const config::RunConfig& config, int64_t ranks);

}  // namespace lockstep::train
