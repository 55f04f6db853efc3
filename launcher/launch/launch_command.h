#pragma once

#include <string>
#include <vector>

#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_plan.h"

namespace lockstep::launcher {

/// The command lines of launchers for a plan whose ranks, contexts and environment are known. Under
/// supervision the launcher always tags output, from which launch produces the requested form; with
/// --exec the launcher gets the user's output options.
///
/// Open MPI 4 and 5 spell some options differently. Throws ConfigError for options that a launcher
/// does not support; those that it ignores are added to the plan's notes.
std::vector<std::string> mpirun_command(LaunchPlan& plan, const LaunchFacts& facts);
std::vector<std::string> srun_command(LaunchPlan& plan, const LaunchFacts& facts);

}  // namespace lockstep::launcher
