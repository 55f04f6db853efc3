#pragma once

#include <string>
#include <vector>

#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_plan.h"

namespace lockstep::launcher {

/// The command lines of launchers for a plan whose ranks, contexts and environment are known.
/// Supervised ranks' output always carries tags, from which launch makes what was asked for; with
/// --exec the launcher is told to.
///
/// Open MPI 4 and 5 spell some options differently. Throws ConfigError for what a launcher cannot
/// do; what it ignores is added to the plan's notes.
std::vector<std::string> mpirun_command(LaunchPlan& plan, const LaunchFacts& facts);
std::vector<std::string> srun_command(LaunchPlan& plan, const LaunchFacts& facts);

}  // namespace lockstep::launcher
