#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// 2^64 divided by the golden ratio: SplitMix64's increment.
inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;

/// Bijection in which a change of any input bit flips half of the output bits on average: the
/// output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
/// Equal on all machines.
LS_HOST_DEVICE constexpr uint64_t mix_bits(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

}  // namespace lockstep
