#pragma once

#include <array>

#include "core/base/philox.h"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/random/random_words.h"

namespace lockstep::cuda {

/// The words of a call: those of its parameters, or in a graph where this replay begins and how far
/// the call is from there.
__device__ inline RandomWords words_of(const RandomWords& given) {
  if (given.position == nullptr) return given;
  const RandomPosition at = *given.position;
  const uint64_t low = at.low + given.low;
  const uint64_t carry = low < at.low ? 1 : 0;
  return {{at.key[0], at.key[1]}, low, at.high + given.high + carry, nullptr};
}

/// The four random words of a group.
struct RandomGroup {
  uint32_t word[4];

  __device__ RandomGroup(const RandomWords& words, int64_t number) {
    const uint64_t low = words.low | static_cast<uint64_t>(number);
    const std::array<uint32_t, 4> drawn =
        philox({static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                static_cast<uint32_t>(words.high), static_cast<uint32_t>(words.high >> 32)},
               {words.key[0], words.key[1]});
    for (int k = 0; k < 4; ++k) word[k] = drawn[static_cast<size_t>(k)];
  }
  __device__ uint64_t wide(int pair) const {
    return joined_words(word[2 * pair], word[2 * pair + 1]);
  }
};

}  // namespace lockstep::cuda
