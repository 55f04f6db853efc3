#pragma once

#include <string>
#include <vector>

#include "profile/profile.h"

namespace lockstep::profile {

/// How long one step took on the ranks.
struct StepOfRanks {
  int64_t step = 0;
  int slowest = 0;  ///< rank
  double slowest_ms = 0;
  double fastest_ms = 0;
};

/// Moves the ranks' profiles to one beginning, by their wall clocks, whose offsets to rank 0's
/// clock are taken off (ProfileRank::clock_offset_ns).
void align(std::vector<Profile>& profiles);

/// For each step that all profiles have, the rank that worked longest in it: waits for other ranks
/// are not work, because in a step of several ranks all take equally long.
std::vector<StepOfRanks> steps_of_ranks(const std::vector<Profile>& profiles);

/// Returns the steps as text, a line for each.
std::string steps_text(const std::vector<StepOfRanks>& steps);

}  // namespace lockstep::profile
