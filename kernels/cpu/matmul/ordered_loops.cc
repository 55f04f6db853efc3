#include <algorithm>

#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/matmul/ordered_product.h"
#include "kernels/cpu/matmul/turn_panel.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

/// Columns that are computed together: for one row as many chains of additions as hide the latency
/// of one.
constexpr int64_t kPanel = 64;
/// Rows whose sums are kept together in a core's nearest cache: whole tiles of registers.
constexpr int64_t kRowsAtOnce = 24;
/// Up to as many rows a panel is read once, so that it need not stay in a cache.
constexpr int64_t kOnePass = 8;
/// Terms of a turned panel that stays in that cache.
constexpr int64_t kNearDepth = 64;

/// Memory of one panel.
struct PanelRoom {
  float* factor;  ///< [kMostTerms, kPanel]
  float* sums;    ///< [kRowsAtOnce, kPanel]
};

/// Terms of a panel's sums: `depth` of each, of rows of a that are `lda` apart and of b, with a row
/// for each term, `b_step` apart.
struct Terms {
  const float* a;
  int64_t lda;
  const float* b;
  int64_t b_step;
  int64_t depth;
};

/// Adds terms to the sums [kRows, kVectors * P::kLanes], in order.
template <class P, int kVectors, int64_t kRows>
inline void add_to_tile(const Terms& terms, float* sums) {
  typename P::Lanes sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) P::load(sum[i][v], sums + i * kPanel + v * P::kLanes);
  }
  const float* b = terms.b;
  for (int64_t s = 0; s < terms.depth; ++s, b += terms.b_step) {
    typename P::Lanes factor[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) P::load(factor[v], b + v * P::kLanes);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kRows; ++i) {
      const float* const a = terms.a + i * terms.lda + s;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) P::multiply_add(sum[i][v], a, factor[v]);
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) P::store(sums + i * kPanel + v * P::kLanes, sum[i][v]);
  }
}

template <class P, int64_t kRows>
inline void add_to_rows(Terms terms, int64_t row, float* sums) {
  constexpr int kVectors = kRows == 1 ? 4 : 2;
  terms.a += row * terms.lda;
  for (int64_t j = 0; j < kPanel; j += kVectors * P::kLanes) {
    add_to_tile<P, kVectors, kRows>(terms, sums + row * kPanel + j);
    terms.b += kVectors * P::kLanes;
  }
}

/// Adds terms to the sums [rows, kPanel]; at most kRowsAtOnce rows.
template <class P>
inline void add_to_panel(const Terms& terms, int64_t rows, float* sums) {
  // Two vectors of a row of sums each: as many as the registers hold beside the factors.
  constexpr int64_t kTile = P::kLanes == 16 ? 12 : 6;
  int64_t row = 0;
  for (; row + kTile <= rows; row += kTile) add_to_rows<P, kTile>(terms, row, sums);
  for (; row + 4 <= rows; row += 4) add_to_rows<P, 4>(terms, row, sums);
  for (; row + 2 <= rows; row += 2) add_to_rows<P, 2>(terms, row, sums);
  if (row < rows) add_to_rows<P, 1>(terms, row, sums);
}

#if LS_HAVE_WIDE_VECTORS

/// Adds to the sums [kRows, 32], kPanel apart, `depth` terms, a multiple of 4, of 32 rows of a
/// transposed factor, which are turned in registers.
template <int kRows>
LS_WIDE_VECTORS_PART inline void add_turned(const float* a, int64_t lda, const float* b,
                                            int64_t ldb, int64_t depth, float* sums) {
  Quads sum[kRows][2];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    WideF32Arithmetic::load(sum[i][0], sums + i * kPanel);
    WideF32Arithmetic::load(sum[i][1], sums + i * kPanel + 16);
  }
  for (int64_t s = 0; s < depth; s += 4) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Quads column[4];
      turn_block(column, b + 16 * half * ldb + s, ldb);
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) {
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          WideF32Arithmetic::multiply_add(sum[i][half], a + i * lda + s + t, column[t]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    WideF32Arithmetic::store(sums + i * kPanel, sum[i][0]);
    WideF32Arithmetic::store(sums + i * kPanel + 16, sum[i][1]);
  }
}

#endif

/// The columns [first, first + columns) of a product, at most kPanel, for the terms [start, start +
/// depth) of their sums.
struct Part {
  int64_t first;
  int64_t columns;
  int64_t start;
  int64_t depth;
};

/// The second factor of terms [from, from + depth) of a part's piece: in place, or in the room.
template <class P>
inline Terms terms_of(const OrderedProduct& p, const Part& part, int64_t from, int64_t depth,
                      const PanelRoom& room) {
  const float* const a = p.a + part.start + from;
  const int64_t row = part.start + from;
  const float* const b =
      p.b + (p.transpose_b ? part.first * p.ldb + row : row * p.ldb + part.first);
  if (!p.transpose_b && part.columns == kPanel && p.m <= kOnePass) {
    return {a, p.lda, b, p.ldb, depth};
  }
  if (p.transpose_b) {
    turn_panel<P>(room.factor, kPanel, b, p.ldb, depth, part.columns);
  } else {
    for (int64_t s = 0; s < depth; ++s) {
      std::copy_n(b + s * p.ldb, part.columns, room.factor + s * kPanel);
    }
  }
  for (int64_t s = 0; part.columns < kPanel && s < depth; ++s) {
    std::fill_n(room.factor + s * kPanel + part.columns, kPanel - part.columns, 0.0F);
  }
  return {a, p.lda, room.factor, kPanel, depth};
}

/// Writes the sums of rows [row, row + rows), added to the addend or to those of the pieces before.
inline void finish(const OrderedProduct& p, const Part& part, int64_t row, int64_t rows,
                   const float* sums) {
  for (int64_t i = row; i < row + rows; ++i, sums += kPanel) {
    float* const c = p.c + i * p.ldc + part.first;
    if (part.start > 0) {
      for (int64_t j = 0; j < part.columns; ++j) c[j] += sums[j];
    } else if (p.addend != nullptr) {
      const float* const addend = p.addend + i * p.addend_ld + part.first;
      for (int64_t j = 0; j < part.columns; ++j) c[j] = addend[j] + sums[j];
    } else {
      std::copy_n(sums, part.columns, c);
    }
  }
}

template <class P>
inline void compute_part(const OrderedProduct& p, const Part& part, const PanelRoom& room) {
  if (p.m <= kOnePass) {
    std::fill_n(room.sums, p.m * kPanel, 0.0F);
#if LS_HAVE_WIDE_VECTORS
    if constexpr (P::kLanes == 16) {
      if (p.transpose_b && p.m <= 4 && part.columns == kPanel && part.depth % 4 == 0) {
        const float* const b = p.b + part.first * p.ldb + part.start;
        for (int64_t j = 0; j < kPanel; j += 32) {
          const auto add = [&]<int kRows>() {
            add_turned<kRows>(p.a + part.start, p.lda, b + j * p.ldb, p.ldb, part.depth,
                              room.sums + j);
          };
          if (p.m == 1) add.template operator()<1>();
          if (p.m == 2) add.template operator()<2>();
          if (p.m == 3) add.template operator()<3>();
          if (p.m == 4) add.template operator()<4>();
        }
        return finish(p, part, 0, p.m, room.sums);
      }
    }
#endif
    for (int64_t from = 0; from < part.depth; from += kNearDepth) {
      const int64_t depth = std::min(kNearDepth, part.depth - from);
      add_to_panel<P>(terms_of<P>(p, part, from, depth, room), p.m, room.sums);
    }
    return finish(p, part, 0, p.m, room.sums);
  }
  Terms terms = terms_of<P>(p, part, 0, part.depth, room);
  for (int64_t row = 0; row < p.m; row += kRowsAtOnce, terms.a += kRowsAtOnce * p.lda) {
    const int64_t rows = std::min(kRowsAtOnce, p.m - row);
    std::fill_n(room.sums, rows * kPanel, 0.0F);
    add_to_panel<P>(terms, rows, room.sums);
    finish(p, part, row, rows, room.sums);
  }
}

}  // namespace

void multiply_in_order_by_loops(const OrderedProduct& p) {
  constexpr int64_t kRoom = (kMostTerms + kRowsAtOnce) * kPanel;
  auto* const floats = static_cast<float*>(
      thread_workspace(WorkspaceUse::kOrderedProduct).room(kRoom * sizeof(float)));
  const PanelRoom room{floats, floats + kMostTerms * kPanel};
  const int64_t piece = terms_of_piece(p.k);
  with_f32_arithmetic([&]<class P>() {
    for (int64_t first = 0; first < p.n; first += kPanel) {
      const int64_t columns = std::min(kPanel, p.n - first);
      for (int64_t start = 0; start < p.k; start += piece) {
        compute_part<P>(p, {first, columns, start, std::min(piece, p.k - start)}, room);
      }
    }
  });
}

}  // namespace lockstep::cpu
