#pragma once

#include <cstdint>

namespace lockstep::train {

/// The place of `position` in a random order of 0, ..., count - 1: a permutation for each (seed,
/// epoch), as a pure function, so that any position is found without making those before it.
/// A Feistel network over the next power of four, keyed by Philox, walks until it lands below
/// `count` (Black, Rogaway 2002: "Ciphers with arbitrary finite domains").
/// Requires 0 <= position < count.
int64_t shuffled(uint64_t seed, int64_t epoch, int64_t count, int64_t position);

}  // namespace lockstep::train
