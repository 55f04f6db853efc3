#pragma once

#include <cstdint>

namespace lockstep::train {

/// Returns element `position` of a random permutation of 0, ..., count - 1, one for each (seed,
/// epoch). A pure function: any position is computed without those before it. A Feistel network
/// over the next power of four, keyed by Philox, is iterated until the result is below `count`
/// (cycle walking; Black, Rogaway 2002: "Ciphers with arbitrary finite domains").
/// Requires 0 <= position < count.
int64_t shuffled(uint64_t seed, int64_t epoch, int64_t count, int64_t position);

}  // namespace lockstep::train
