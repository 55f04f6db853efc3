#pragma once

#include <cstdint>
#include <span>

namespace lockstep::dist {

/// All bits of all words mixed, in their order: a change of any bit changes half of them. Equal on
/// all machines. The finaliser is that of SplitMix64 (Steele, Lea, Flood 2014).
constexpr uint64_t hash_words(std::span<const uint64_t> words) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  uint64_t hash = kGolden;
  for (const uint64_t word : words) {
    hash = (hash ^ word) + kGolden;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
  }
  return hash;
}

}  // namespace lockstep::dist
