#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Runs `part` on every rank and returns what it returned, by rank. If it throws on some ranks, all
/// of them throw: each its own error, the others one of the same class with the words of the first
/// rank that failed. A rank may take as long as it needs; one that is lost ends the wait with
/// PeerLostError, and a DistError of `part` is thrown at once, as the group has failed then.
/// Collective. A null group is one rank.
std::vector<std::string> together(ProcessGroup* group, const std::function<std::string()>& part);

}  // namespace lockstep::dist
