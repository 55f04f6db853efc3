#pragma once

#include <cstdint>

#include "core/base/mix_bits.h"

namespace lockstep::cuda {

/// Word `index` of the pattern: output `index` of SplitMix64 seeded with `seed`.
LS_HOST_DEVICE inline uint64_t pattern_word(uint64_t seed, uint64_t index) {
  return mix_bits(seed + (index + 1) * kGoldenRatio);
}

/// Parameters of the kernels of pattern.cu.
struct Pattern {
  uint64_t* words;
  uint64_t count;
  uint64_t seed;
};
struct PatternCheck {
  const uint64_t* words;
  uint64_t count;
  uint64_t seed;
  unsigned long long* wrong;  ///< the kernel adds the number of wrong words
};

}  // namespace lockstep::cuda
