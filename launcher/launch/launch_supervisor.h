#pragma once

#include <functional>

#include "launcher/launch/launch_plan.h"
#include "launcher/launch/signal_queue.h"

namespace lockstep::launcher {

/// Runs a job to its end and returns the program's exit status: 0 on success; that of the first
/// rank that failed, or 128 + signal if a signal ended it; 75 if the ranks stopped with their state
/// saved; 128 + signal if a signal ended a job that could not save; 110 after --timeout.
///
/// `plan_for` plans a start; `restart` counts from 0. After a failure the job is restarted, at most
/// --max-restarts times without a new checkpoint in between. The wait before a restart doubles each
/// time, up to a minute. Reports failures and restarts on standard error. Nothing is started if
/// `signals` holds a signal already.
int supervise_launch(SignalQueue& signals, const std::function<LaunchPlan(int restart)>& plan_for);

}  // namespace lockstep::launcher
