#pragma once

#include <cstdint>

#include "core/tensor/random_position.h"
#include "kernels/common/random_numbers.h"

namespace lockstep::cuda {

/// Philox key of a call, and its counter without the group number in the low bits. In a graph the
/// key is that of `position`, and the counter is a distance from it.
struct RandomWords {
  uint32_t key[2];
  uint64_t low;
  uint64_t high;
  const RandomPosition* position;  ///< in device memory; null outside of graphs
};

/// Random truths, as bytes: those words that are `kept`.
struct RandomTruths {
  RandomWords words;
  KeptWords kept;
};

/// Words of a call of the default generator, whose key this is. In a graph that is captured replays
/// draw them anew.
RandomWords random_words(const RandomKey& key);
/// Queues out[i] = 0 or 1.
void draw_truths(void* out, int64_t count, const RandomTruths& truths);

}  // namespace lockstep::cuda
