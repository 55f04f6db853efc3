#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "core/tensor/generator.h"

namespace lockstep::cpu {

/// Random words of 64 consecutive groups of one call: word[k][g] is word k of group g.
struct RandomBlock {
  static constexpr int64_t kGroups = 64;
  alignas(64) uint32_t word[4][kGroups];

  /// Draws groups first_group, first_group + 1, .... first_group is a multiple of kGroups.
  void draw(const RandomKey& key, uint64_t first_group);
};

/// keep[i] = 1 with probability p, from one word per element for every dtype: 4 elements a group.
void draw_mask(const RandomBlock& words, double p, uint8_t* keep);
/// Draws elements [first, first + count) of the mask of a call.
void draw_mask(const RandomKey& key, double p, int64_t first, int64_t count, uint8_t* keep);

/// Key of the next call of `generator`, or of the thread's default generator if it is null.
RandomKey next_call(Generator* generator);

/// Splits `elements` into blocks of `per_block`, draws each block's words and calls body(words,
/// first element, number of elements). Parallel; block b always draws the groups from 64 b on, so
/// the numbers do not depend on the number of threads.
void for_random_blocks(
    const RandomKey& key, int64_t elements, int64_t per_block,
    FunctionRef<void(const RandomBlock& words, int64_t first, int64_t count)> body);

}  // namespace lockstep::cpu
