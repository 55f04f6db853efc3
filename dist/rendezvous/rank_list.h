#pragma once

#include <string>
#include <vector>

namespace lockstep::dist {

/// Ranks for a person, in ascending order: "rank 5", "ranks 0-2, 5", "no rank".
std::string rank_list(std::vector<int> ranks);

/// 0 to size - 1: for a subgroup of all ranks.
std::vector<int> every_rank(int size);

}  // namespace lockstep::dist
