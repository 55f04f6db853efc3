#pragma once

#include <cstdint>

#include "core/mix_bits.h"

namespace lockstep::cuda {

/// Word `index` of the pattern of `seed`: SplitMix64 that begins there.
LS_HOST_DEVICE inline uint64_t pattern_word(uint64_t seed, uint64_t index) {
  return mix_bits(seed + (index + 1) * kGoldenRatio);
}

}  // namespace lockstep::cuda
