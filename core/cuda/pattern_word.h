#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define LS_HOST_DEVICE __host__ __device__
#else
#define LS_HOST_DEVICE
#endif

namespace lockstep::cuda {

/// Word `index` of the pattern of `seed`: the output function of SplitMix64 (Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, 2014).
LS_HOST_DEVICE inline uint64_t pattern_word(uint64_t seed, uint64_t index) {
  uint64_t word = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

}  // namespace lockstep::cuda
