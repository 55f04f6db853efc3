#pragma once

#include <cstdint>

namespace lockstep {

struct RandomKey;  // core/tensor/generator.h

/// A RandomKey as kernels read it from memory: of group 0, the halves of the counter.
struct RandomPosition {
  uint32_t key[2];
  uint64_t low;
  uint64_t high;
};
RandomPosition position_of(const RandomKey& key);
/// The counter of `to` as a distance from that of `from`, modulo 2^128. Their seeds are equal.
RandomPosition distance(const RandomKey& from, const RandomKey& to);

}  // namespace lockstep
