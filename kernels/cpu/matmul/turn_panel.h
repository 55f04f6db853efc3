#pragma once

#include <cstdint>

#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/transpose.h"

namespace lockstep::cpu {

#if LS_HAVE_WIDE_VECTORS

typedef float Quads __attribute__((vector_size(64)));

// The lower, or the upper, two elements of each quad of two vectors in turn.
#define LS_LOW_PAIRS 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define LS_HIGH_PAIRS 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31

/// The 4 columns of 16 rows of 4 elements, which are `ld` apart.
LS_WIDE_VECTORS_PART inline void turn_block(Quads (&column)[4], const float* from, int64_t ld) {
  // Each vector holds 4 elements of 4 rows that are 4 rows apart.
  Quads row[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r, from += ld) {
    __m512 quads = _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(from));
    quads = _mm512_mask_broadcast_f32x4(quads, 0x00f0, _mm_loadu_ps(from + 4 * ld));
    quads = _mm512_mask_broadcast_f32x4(quads, 0x0f00, _mm_loadu_ps(from + 8 * ld));
    quads = _mm512_mask_broadcast_f32x4(quads, 0xf000, _mm_loadu_ps(from + 12 * ld));
    row[r] = reinterpret_cast<Quads>(quads);
  }
  const Quads even_low = __builtin_shufflevector(row[0], row[2], LS_LOW_PAIRS);
  const Quads even_high = __builtin_shufflevector(row[0], row[2], LS_HIGH_PAIRS);
  const Quads odd_low = __builtin_shufflevector(row[1], row[3], LS_LOW_PAIRS);
  const Quads odd_high = __builtin_shufflevector(row[1], row[3], LS_HIGH_PAIRS);
  column[0] = __builtin_shufflevector(even_low, odd_low, LS_LOW_PAIRS);
  column[1] = __builtin_shufflevector(even_low, odd_low, LS_HIGH_PAIRS);
  column[2] = __builtin_shufflevector(even_high, odd_high, LS_LOW_PAIRS);
  column[3] = __builtin_shufflevector(even_high, odd_high, LS_HIGH_PAIRS);
}

#undef LS_LOW_PAIRS
#undef LS_HIGH_PAIRS

#endif

/// Writes `depth` elements of each of `columns` rows, `ld` apart, as columns of `to`, whose rows
/// are `to_ld` apart: a transposed factor of a product, turned.
template <class P>
inline void turn_panel(float* to, int64_t to_ld, const float* from, int64_t ld, int64_t depth,
                       int64_t columns) {
  static const TransposeBlock turn = transpose_block(sizeof(float));
  constexpr int64_t kBytes = sizeof(float);
  const auto turn_rest = [&](int64_t column, int64_t count, int64_t first) {
    turn(reinterpret_cast<char*>(to + first * to_ld + column), to_ld * kBytes,
         reinterpret_cast<const char*>(from + column * ld + first), ld * kBytes, depth - first,
         count);
  };
  int64_t column = 0;
#if LS_HAVE_WIDE_VECTORS
  if constexpr (P::kLanes == 16) {
    for (; column + 16 <= columns; column += 16) {
      int64_t s = 0;
      for (; s + 4 <= depth; s += 4) {
        Quads turned[4];
        turn_block(turned, from + column * ld + s, ld);
        for (int t = 0; t < 4; ++t)
          WideF32Arithmetic::store(to + (s + t) * to_ld + column, turned[t]);
      }
      if (s < depth) turn_rest(column, 16, s);
    }
  }
#endif
  if (column < columns) turn_rest(column, columns - column, 0);
}

}  // namespace lockstep::cpu
