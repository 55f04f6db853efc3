#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// The fraction of the golden ratio in 64 bits: what SplitMix64 counts up by.
inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;

/// A bijection after which a change of any bit changes half of all: the output function of
/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
/// Equal on all machines.
LS_HOST_DEVICE constexpr uint64_t mix_bits(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

}  // namespace lockstep
