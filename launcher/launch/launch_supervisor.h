#pragma once

#include <functional>

#include "launcher/launch/launch_plan.h"

namespace lockstep::launcher {

/// Runs a job to its end and returns the program's exit status: 0; that of the first rank that
/// failed, 128 + signal for one that a signal ended; 75 when ranks stopped with everything saved;
/// 128 + signal when a signal ended a job that could not save; 110 after --timeout.
///
/// `plan_for` plans a start; `restart` counts from 0. After a failure the job is started again
/// where
/// --max-restarts allows: so often without a new checkpoint in between. The wait before doubles
/// each time, up to a minute. Says on standard error what failed and what comes next.
int supervise_launch(const std::function<LaunchPlan(int restart)>& plan_for);

}  // namespace lockstep::launcher
