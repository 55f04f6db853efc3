#pragma once

#include <cstdint>

#include "dist/simulate/step_work.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Counts what the last of `ranks` ranks computes in a step of a resolved config: times of the
/// result are the floating-point operations that operators declare, and `update` is 0. Runs one
/// micro-batch on the meta device, as plan_run does, under the same conditions.
dist::StepWork count_work(const config::RunConfig& config, int64_t ranks);

}  // namespace lockstep::train
