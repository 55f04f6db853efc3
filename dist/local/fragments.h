#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Which parameters local steps average together, and when (dist/local/local_sgd.h).

namespace lockstep::dist {

/// Divides parameters of so many elements into runs of about equal size, at most `fragments`.
/// Returns the end of each run.
std::vector<size_t> fragment_ends(std::span<const int64_t> elements, int64_t fragments);

/// Elements that each of `ranks` ranks owns of a fragment of these parameters: equal parts of an
/// arena in which each parameter begins with a coded block.
int64_t owned_elements(std::span<const int64_t> elements, int64_t ranks);

/// After `steps` steps: how many there were since the last average of fragment `number` of `count`,
/// from 0, began.
int64_t steps_since_average(int64_t number, int64_t count, int64_t inner_steps, int64_t steps);

}  // namespace lockstep::dist
