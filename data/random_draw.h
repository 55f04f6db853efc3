#pragma once

#include <array>
#include <cstdint>

#include "core/base/philox.h"

namespace lockstep::train {

/// The purpose of a draw: different streams give independent numbers for the same seed.
enum class DrawStream : uint32_t {
  kWindowOffset = 0x64617461,
  kRandomToken = 0x746f6b65,
  kEpochOrder = 0x65706f63,
  kTableRow = 0x7461626c,
  kRandomSample = 0x73616d70,
  kWeightedSample = 0x77656967,
  kMixture = 0x6d697874,
};

/// Two 64-bit draws for (seed, stream, step, index, block). Stream and block go into the key, so
/// that step and index can use the whole counter.
constexpr std::array<uint64_t, 2> random_draw(uint64_t seed, DrawStream stream, int64_t step,
                                              int64_t index, uint32_t block) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto key = philox({static_cast<uint32_t>(stream), block, 0, 0}, {low(seed), high(seed)});
  const auto s = static_cast<uint64_t>(step);
  const auto i = static_cast<uint64_t>(index);
  const auto words = philox({low(i), high(i), low(s), high(s)}, {key[0], key[1]});
  return {words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32};
}

}  // namespace lockstep::train
