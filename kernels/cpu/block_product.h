#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/arithmetic.h"

namespace lockstep::cpu {

/// A product c = a b of blocks in a core's cache, in words (arithmetic.h): element (i, s) of a lies
/// at a[i * a_row + s * a_step], row s of b at b + s * b_step and row i of c at c + i * c_row.
struct BlockProduct {
  const float* a;
  int64_t a_row;
  int64_t a_step;
  const float* b;
  int64_t b_step;
  float* c;
  int64_t c_row;
};

/// Steps of the sum and columns of the result that some rows of a product take. Columns are
/// multiples of 16.
struct Span {
  int64_t first_step;
  int64_t last_step;
  int64_t first_column;
  int64_t last_column;
};

/// Rows that share a span. The numbers of rows of a and c are rounded up to multiples of it.
inline constexpr int64_t kRowUnit = 8;

/// Computes a tile of P::kRows rows and `kVectors` vectors in registers: c = sum, or
/// keep[i] c + sum if `keep` is not null. Each element adds its terms in order.
template <class P, int kVectors>
inline void compute_tile(const BlockProduct& p, const Span& span, int64_t row, int64_t column,
                         const float* keep) {
  using Lanes = typename P::Lanes;
  Lanes sum[P::kRows][kVectors] = {};
  const float* a = p.a + row * p.a_row + span.first_step * p.a_step;
  const float* b = p.b + column + span.first_step * p.b_step;
  for (int64_t s = span.first_step; s < span.last_step; ++s, a += p.a_step, b += p.b_step) {
    Lanes factor[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) P::load(factor[v], b + v * P::kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < P::kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) P::multiply_add(sum[i][v], a + i * p.a_row, factor[v]);
    }
  }
  float* c = p.c + row * p.c_row + column;
#pragma GCC unroll 8
  for (int i = 0; i < P::kRows; ++i, c += p.c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + v * P::kLanes;
      if (keep != nullptr) {
        Lanes before;
        P::load(before, to);
        P::add_scaled(sum[i][v], before, keep[row + i]);
      }
      P::store(to, sum[i][v]);
    }
  }
}

/// Computes `rows` rows of a product; `span_of(i)` is the span of the rows [i, i + kRowUnit).
template <class P, class SpanOf>
inline void multiply(const BlockProduct& p, int64_t rows, const float* keep, SpanOf span_of) {
  for (int64_t unit = 0; unit < rows; unit += kRowUnit) {
    const Span span = span_of(unit);
    for (int64_t i = unit; i < unit + kRowUnit; i += P::kRows) {
      int64_t j = span.first_column;
      for (; j + 2 * P::kLanes <= span.last_column; j += 2 * P::kLanes) {
        compute_tile<P, 2>(p, span, i, j, keep);
      }
      if (j < span.last_column) compute_tile<P, 1>(p, span, i, j, keep);
    }
  }
}

/// Computes `rows` rows that share a span, column by column of tiles: for a `b` that is too large
/// to be read anew for each row of tiles.
template <class P>
inline void multiply_columns(const BlockProduct& p, int64_t rows, const Span& span,
                             const float* keep) {
  for (int64_t j = span.first_column; j < span.last_column; j += 2 * P::kLanes) {
    const bool is_wide = j + 2 * P::kLanes <= span.last_column;
    for (int64_t i = 0; i < rows; i += P::kRows) {
      if (is_wide) {
        compute_tile<P, 2>(p, span, i, j, keep);
      } else {
        compute_tile<P, 1>(p, span, i, j, keep);
      }
    }
  }
}

/// sums[r] = the sum of the products of the elements of row r of x and of y, added in the order of
/// a block product, whose elements have the same bits. `count` is a multiple of kRowUnit.
inline void row_products(float* sums, const float* x, const float* y, int64_t count,
                         int64_t width) {
  for (int64_t r = 0; r < count; r += kRowUnit, x += kRowUnit * width, y += kRowUnit * width) {
    float sum[kRowUnit] = {};
    for (int64_t d = 0; d < width; ++d) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRowUnit; ++i) {
        sum[i] = std::fma(x[i * width + d], y[i * width + d], sum[i]);
      }
    }
    std::copy_n(sum, kRowUnit, sums + r);
  }
}

}  // namespace lockstep::cpu
