#include "kernels/cpu/matmul/packed_product.h"

#include <algorithm>
#include <type_traits>

#include "core/tensor/dtype.h"
#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/matmul/ordered_product.h"
#include "kernels/cpu/matmul/turn_panel.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

// A piece of the second factor is packed in strips as wide as a tile, which stay in the
// second-level cache while strips of the first factor, in the nearest one, pass over them.

/// Columns of the second factor that are packed at once: whole strips of every arithmetic.
constexpr int64_t kMostColumns = 384;

/// A tile of the result, whose sums fill three quarters of the registers; what is left holds a
/// vector of each strip.
template <class P>
inline constexpr int kTileVectors = P::kLanes == 16 ? 3 : 2;
template <class P>
inline constexpr int64_t kTileRows = P::kLanes == 16 ? 8 : 6;
template <class P>
inline constexpr int64_t kTileColumns = kTileVectors<P>* P::kLanes;
// Of any arithmetic: of a tile, and of a vector, as many as columns that are turned at once.
constexpr int64_t kMostRows = 8, kMostWidth = 48, kMostLanes = 16;

/// Packed elements as f32.
struct PackRoom {
  float* columns;  ///< [kMostColumns / kTileColumns, depth, kTileColumns]
  float* rows;     ///< [kTileRows, kMostTerms], of a transposed factor [depth, kTileRows]
  float* lines;    ///< [kMostLanes, kMostTerms], to be turned
  float* sums;     ///< [kTileRows, kTileColumns]
};

/// A block of the product: columns [first, first + columns), terms [start, start + depth).
struct Block {
  int64_t first;
  int64_t columns;
  int64_t start;
  int64_t depth;
};

/// Writes n elements as f32. They come from memory in lines of a matrix, `ld` apart, too short for
/// the processor to look ahead by itself.
template <class P, class T>
inline void widen(int64_t n, float* to, const T* from, int64_t ld) {
  constexpr int64_t kLinesAhead = 4;
  int64_t i = 0;
  for (; i + P::kLanes <= n; i += P::kLanes) {
    typename P::Lanes lanes;
    P::load(lanes, from + i);
    __builtin_prefetch(from + kLinesAhead * ld + i);
    P::store(to + i, lanes);
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

/// Packs the columns of a block; those missing in the last strip are 0.
template <class P, class T>
inline void pack_columns(const PackedProduct<T>& p, const Block& block, const PackRoom& room) {
  constexpr int64_t kWidth = kTileColumns<P>;
  const int64_t strip = block.depth * kWidth;
  const int64_t whole = block.columns / kWidth * kWidth;
  if (whole < block.columns) std::fill_n(room.columns + whole * block.depth, strip, 0.0F);
  if (!p.transpose_b) {
    const T* from = p.b + block.start * p.ldb + block.first;
    for (int64_t s = 0; s < block.depth; ++s, from += p.ldb) {
      float* to = room.columns + s * kWidth;
      for (int64_t j = 0; j < block.columns; j += kWidth, to += strip) {
        widen<P>(std::min(kWidth, block.columns - j), to, from + j, p.ldb);
      }
    }
    return;
  }
  const T* from = p.b + block.first * p.ldb + block.start;
  for (int64_t j = 0; j < block.columns; j += P::kLanes) {
    const int64_t count = std::min(P::kLanes, block.columns - j);
    float* const to = room.columns + j / kWidth * strip + j % kWidth;
    if constexpr (std::is_same_v<T, float>) {
      turn_panel<P>(to, kWidth, from + j * p.ldb, p.ldb, block.depth, count);
    } else {
      for (int64_t line = 0; line < count; ++line) {
        widen<P>(block.depth, room.lines + line * kMostTerms, from + (j + line) * p.ldb, p.ldb);
      }
      turn_panel<P>(to, kWidth, room.lines, kMostTerms, block.depth, count);
    }
  }
}

/// Rows of the first factor as f32: element (i, s) is at i ld + s, of a transposed factor at s
/// kTileRows + i.
struct Strip {
  const float* elements;
  int64_t ld;
};

/// Rows [row, row + rows) of the first factor, in place or packed; those missing in the tile are 0.
template <class P, class T>
inline Strip pack_rows(const PackedProduct<T>& p, const Block& block, int64_t row, int64_t rows,
                       float* room) {
  constexpr int64_t kRows = kTileRows<P>;
  if constexpr (std::is_same_v<T, float>) {
    if (!p.transpose_a && rows == kRows) return {p.a + row * p.lda + block.start, p.lda};
  }
  if (rows < kRows) std::fill_n(room, kRows * kMostTerms, 0.0F);
  if (!p.transpose_a) {
    for (int64_t i = 0; i < rows; ++i) {
      widen<P>(block.depth, room + i * kMostTerms, p.a + (row + i) * p.lda + block.start, p.lda);
    }
    return {room, kMostTerms};
  }
  using Eight = F32Arithmetic;
  static_assert(kRows <= Eight::kLanes);
  const bool is_wide = row + Eight::kLanes <= p.m;
  const T* from = p.a + block.start * p.lda + row;
  float* to = room;
  for (int64_t s = 0; s < block.depth; ++s, from += p.lda, to += kRows) {
    if (is_wide) {  // the next term overwrites what is too much
      Eight::Lanes lanes;
      Eight::load(lanes, from);
      Eight::store(to, lanes);
    } else {
      for (int64_t i = 0; i < rows; ++i) to[i] = static_cast<float>(from[i]);
    }
  }
  return {room, 0};
}

/// What the sums of a block are added to: the addend, or the sums of the pieces before; null: none.
struct Before {
  const float* rows;
  int64_t ld;
};

/// Computes the sums of a tile in registers, and writes them.
template <class P, bool kTransposed>
inline void multiply_tile(const Strip& strip, const float* b, int64_t depth, Before before,
                          float* c, int64_t ldc) {
  const float* const a = strip.elements;
  constexpr int64_t kRows = kTileRows<P>, kWidth = kTileColumns<P>;
  constexpr int64_t kAhead = 16 * kWidth;  // the strip comes from the second-level cache
  typename P::Lanes sum[kRows][kTileVectors<P>] = {};
  for (int64_t s = 0; s < depth; ++s, b += kWidth) {
    typename P::Lanes factor[kTileVectors<P>];
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors<P>; ++v) {
      P::load(factor[v], b + v * P::kLanes);
      __builtin_prefetch(b + kAhead + v * P::kLanes);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
      typename P::Lanes each;
      P::spread(each, kTransposed ? a + s * kRows + i : a + i * strip.ld + s);
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors<P>; ++v) P::multiply_add(sum[i][v], each, factor[v]);
    }
  }
  if (before.rows != nullptr) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors<P>; ++v) {
        typename P::Lanes added;
        P::load(added, before.rows + i * before.ld + v * P::kLanes);
        sum[i][v] = added + sum[i][v];
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors<P>; ++v) P::store(c + i * ldc + v * P::kLanes, sum[i][v]);
  }
}

/// Computes `rows` rows of a block from packed ones.
template <class P, class T>
inline void multiply_rows(const PackedProduct<T>& p, const Block& block, int64_t row, int64_t rows,
                          const Strip& strip, const PackRoom& room) {
  constexpr int64_t kRows = kTileRows<P>, kWidth = kTileColumns<P>;
  const auto tile = [&](const float* b, Before before, float* c, int64_t ldc) {
    p.transpose_a ? multiply_tile<P, true>(strip, b, block.depth, before, c, ldc)
                  : multiply_tile<P, false>(strip, b, block.depth, before, c, ldc);
  };
  const Before all = block.start > 0 ? Before{p.c, p.ldc} : Before{p.addend, p.addend_ld};
  const float* b = room.columns;
  for (int64_t j = 0; j < block.columns; j += kWidth, b += block.depth * kWidth) {
    const int64_t column = block.first + j, width = std::min(kWidth, block.columns - j);
    float* const c = p.c + row * p.ldc + column;
    const float* const added = all.rows != nullptr ? all.rows + row * all.ld + column : nullptr;
    if (rows == kRows && width == kWidth) {
      tile(b, {added, all.ld}, c, p.ldc);
      continue;
    }
    tile(b, {nullptr, 0}, room.sums, kWidth);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t l = 0; l < width; ++l) {
        const float sum = room.sums[i * kWidth + l];
        c[i * p.ldc + l] = added != nullptr ? added[i * all.ld + l] + sum : sum;
      }
    }
  }
}

}  // namespace

template <class T>
void multiply_packed(const PackedProduct<T>& p) {
  constexpr int64_t kColumns = kMostColumns * kMostTerms, kRows = kMostRows * kMostTerms;
  constexpr int64_t kLines = kMostLanes * kMostTerms, kSums = kMostRows * kMostWidth;
  auto* const floats =
      static_cast<float*>(thread_workspace(WorkspaceUse::kWideProduct)
                              .room((kColumns + kRows + kLines + kSums) * sizeof(float)));
  const PackRoom room{floats, floats + kColumns, floats + kColumns + kRows,
                      floats + kColumns + kRows + kLines};
  const int64_t piece = terms_of_piece(p.k);
  with_f32_arithmetic([&]<class P>() {
    for (int64_t first = 0; first < p.n; first += kMostColumns) {
      const int64_t columns = std::min(kMostColumns, p.n - first);
      for (int64_t start = 0; start < p.k; start += piece) {
        const Block block{first, columns, start, std::min(piece, p.k - start)};
        pack_columns<P>(p, block, room);
        for (int64_t row = 0; row < p.m; row += kTileRows<P>) {
          const int64_t rows = std::min(kTileRows<P>, p.m - row);
          multiply_rows<P>(p, block, row, rows, pack_rows<P>(p, block, row, rows, room.rows), room);
        }
      }
    }
  });
}

template void multiply_packed(const PackedProduct<float>&);
template void multiply_packed(const PackedProduct<BFloat16>&);
template void multiply_packed(const PackedProduct<Half>&);

}  // namespace lockstep::cpu
