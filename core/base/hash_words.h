#pragma once

#include <cstdint>
#include <span>

#include "core/base/mix_bits.h"

namespace lockstep {

/// Hash of all words, dependent on their order. Equal on all machines.
constexpr uint64_t hash_words(std::span<const uint64_t> words) {
  uint64_t hash = kGoldenRatio;
  for (const uint64_t word : words) hash = mix_bits((hash ^ word) + kGoldenRatio);
  return hash;
}

}  // namespace lockstep
