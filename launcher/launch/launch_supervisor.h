#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/launch/launch_plan.h"
#include "launcher/launch/signal_queue.h"

namespace lockstep::launcher {

/// What a start of a job is planned for.
struct LaunchStart {
  int restart = 0;                    ///< starts before this one
  int ranks = 0;                      ///< number of ranks; 0: as many as the user asked for
  std::vector<std::string> left_out;  ///< hosts that are not used
  bool keep_slow = false;             ///< training is to leave out no rank as too slow
};

/// Runs a job to its end and returns the program's exit status: 0 on success; that of the first
/// rank that failed, or 128 + signal if a signal ended it; 75 if the ranks stopped with their state
/// saved; 128 + signal if a signal ended a job that could not save; 110 after --timeout.
///
/// `plan_for` plans a start. After a failure that may not recur the job is started again, as
/// RestartPolicy decides by --max-restarts, --restart-delay and --min-ranks; `can_do`, if given,
/// says whether so many ranks can do the job. Reports failures and restarts on standard error, and
/// those of training in restarts.jsonl (RestartLog). Nothing is started if `signals` holds a
/// signal.
int supervise_launch(SignalQueue& signals,
                     const std::function<LaunchPlan(const LaunchStart&)>& plan_for,
                     const std::function<bool(int ranks)>& can_do = {});

}  // namespace lockstep::launcher
