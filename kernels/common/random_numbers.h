#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"
#include "kernels/common/elementary.h"

namespace lockstep {

// Random numbers from random words, the same on every backend. Each group of a call
// (core/tensor/generator.h) is four 32-bit words, which give four elements, or two of 64 bits.
// Element i of a call uses word i % 4 of group i / 4; a 64-bit element uses words 2 (i % 2) and the
// next of group i / 2.

/// Joins two words to 64 bits.
LS_HOST_DEVICE inline uint64_t joined_words(uint32_t low, uint32_t high) {
  return low | (static_cast<uint64_t>(high) << 32);
}

/// Uniform in [0, 1), from `bits` random bits: rounding to a dtype with that many mantissa bits
/// cannot give 1.
LS_HOST_DEVICE inline float unit_interval(uint32_t word, int bits) {
  const float scale = 1.0F / static_cast<float>(1 << bits);
  return static_cast<float>(static_cast<int32_t>(word >> (32 - bits))) * scale;
}
LS_HOST_DEVICE inline double unit_interval(uint64_t words) {
  return static_cast<double>(words >> 11) * 0x1p-53;
}

/// Two independent normally distributed numbers.
template <class T>
struct NormalPair {
  T first;
  T second;
};
/// Box & Muller 1958: sqrt(-2 ln u) is the radius and 2 pi v the angle of the pair.
LS_HOST_DEVICE inline NormalPair<float> normal_pair(uint32_t distance_word, uint32_t turn_word) {
  // u in (0, 1], 31 bits: the tails reach 6.6 standard deviations.
  const int32_t bits = static_cast<int32_t>(distance_word >> 1);
  const float u = (static_cast<float>(bits) + 0.5F) * 0x1p-31F;
  const int32_t turn_bits = static_cast<int32_t>(turn_word >> 8);
  const SineCosine turn = sincos_turns_f32(static_cast<float>(turn_bits) * 0x1p-24F);
  const float distance = std::sqrt(-2.0F * log_f32(u));
  return {distance * turn.cosine, distance * turn.sine};
}
/// Normal pair from 64 bits per number, by the platform's functions: devices may differ in the last
/// bit.
LS_HOST_DEVICE inline NormalPair<double> normal_pair(uint64_t distance_words, uint64_t turn_words) {
  const double u = (static_cast<double>(distance_words >> 11) + 0.5) * 0x1p-53;
  const double angle = static_cast<double>(turn_words >> 11) * (0x1p-53 * 6.28318530717958647693);
  const double distance = std::sqrt(-2.0 * std::log(u));
  return {distance * std::cos(angle), distance * std::sin(angle)};
}

/// Selects random words with probability p: those below p 2^32. p = 1 selects all.
struct KeptWords {
  uint32_t last;
  uint8_t any;

  explicit KeptWords(double p) {
    const uint64_t threshold = static_cast<uint64_t>(p * 0x1p32);
    last = static_cast<uint32_t>(threshold - 1);
    any = threshold != 0 ? 1 : 0;
  }
  LS_HOST_DEVICE uint8_t operator()(uint32_t word) const {
    return static_cast<uint8_t>(word <= last ? any : 0);
  }
};

/// floor(u range) for a uniform u in [0, 1) with 64 random bits; a 128-bit product replaces the
/// division.
LS_HOST_DEVICE inline uint64_t below(uint64_t words, uint64_t range) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(words) * range) >> 64);
}

}  // namespace lockstep
