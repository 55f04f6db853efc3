#pragma once

#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/attention/head_rows.h"
#include "kernels/cpu/attention/problem.h"
#include "kernels/cpu/block_product.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

// Blocks of up to kAttentionBlock rows as factors of products, in words (arithmetic.h).

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The dtype in which rows are read for arithmetic P.
template <class P>
inline constexpr ComputeLane kReadAs = P::kPerWord == 2 ? ComputeLane::kBF16 : ComputeLane::kF32;

/// Cuts a thread's workspace into pieces that start at cache lines.
class Pieces {
 public:
  /// Pieces for up to `floats` floats in all, and one cache line for each.
  Pieces(Workspace& workspace, int64_t floats)
      : next_(static_cast<float*>(workspace.room(static_cast<size_t>(floats) * sizeof(float)))) {}
  float* take(int64_t floats) {
    float* const piece = next_;
    next_ += round_up(floats, 16);
    return piece;
  }

 private:
  float* next_;
};

/// Turns rows of words into columns: word w of row r goes to to[w * kAttentionBlock + r].
inline void transpose_words(float* to, const float* rows, int64_t words, int64_t count) {
  static const TransposeBlock turn = transpose_block(sizeof(float));
  turn(reinterpret_cast<char*>(to), kAttentionBlock * static_cast<int64_t>(sizeof(float)),
       reinterpret_cast<const char*>(rows), words * static_cast<int64_t>(sizeof(float)), words,
       count);
}

/// Rows as the second factor of a product that sums over them: for f32 the rows themselves; for
/// bf16 words of neighbouring rows, written to `pairs`. The rows after an odd count must be 0.
template <class P>
inline const float* summed_rows(const float* rows, int64_t width, int64_t count, float* pairs) {
  if constexpr (P::kPerWord == 1) {
    return rows;
  } else {
    typedef uint16_t Element __attribute__((may_alias));
    typedef uint32_t Word __attribute__((may_alias));
    const auto* from = reinterpret_cast<const Element*>(rows);
    auto* to = reinterpret_cast<Word*>(pairs);
    for (int64_t r = 0; r < count; r += 2, from += 2 * width, to += width) {
      for (int64_t d = 0; d < width; ++d) {
        to[d] = static_cast<uint32_t>(from[d]) | static_cast<uint32_t>(from[d + width]) << 16;
      }
    }
    return pairs;
  }
}

/// Steps of a sum over `count` elements.
template <class P>
constexpr int64_t steps(int64_t count) {
  return (count + P::kPerWord - 1) / P::kPerWord;
}

}  // namespace lockstep::cpu
