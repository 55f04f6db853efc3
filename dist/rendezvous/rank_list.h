#pragma once

#include <string>
#include <vector>

namespace lockstep::dist {

/// Formats ranks for messages, in ascending order: "rank 5", "ranks 0-2, 5", "no rank".
std::string rank_list(std::vector<int> ranks);

/// Returns 0 to size - 1, for a subgroup of all ranks.
std::vector<int> every_rank(int size);

}  // namespace lockstep::dist
