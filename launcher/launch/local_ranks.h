#pragma once

#include <vector>

#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_plan.h"

namespace lockstep::launcher {

/// The processes of a plan whose contexts and environment are known, for ranks of this host that
/// launch starts itself. They get the variables by which torchrun and mpirun tell a rank its
/// number, and connect by TCP at a free port of loopback. Adds a note for each option that only a
/// launcher carries out.
std::vector<LaunchPlan::Process> local_ranks(LaunchPlan& plan, const LaunchFacts& facts);

}  // namespace lockstep::launcher
