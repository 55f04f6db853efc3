#include "kernels/cpu/matmul/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/matmul/gemm_loop.h"
#include "kernels/cpu/matmul/onednn.h"
#include "kernels/cpu/matmul/ordered_product.h"
#include "kernels/cpu/matmul/packed_product.h"
#include "kernels/cpu/wide_vectors.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

/// How a product is tiled: tiles of `rows` by `columns`, each over the whole of k.
struct Tiling {
  int64_t rows;
  int64_t columns;
};

/// Chooses enough tiles for a large machine, but few enough to keep oneDNN near its peak: each tile
/// packs its own copy of its factors, so small tiles are slow. A power of two of equal tiles
/// divides evenly among 2, 4 or 8 threads. `enough`: as many tiles need not be cut for more
/// threads.
Tiling tiling_of(int64_t m, int64_t n, int64_t k, int64_t enough) {
  // Tiles have at least 2 MFLOP; beyond 8 or 16 tiles they must also have a larger area.
  constexpr double kLeastWork = 2e6;
  // Elements of a tile that stay in a core's cache until the caller has read them.
  constexpr int64_t kNearArea = 131072;
  const auto least_area = [](int64_t tiles) -> int64_t {
    if (tiles <= 8) return 1;
    return tiles <= 16 ? 65536 : tiles <= 64 ? 262144 : std::numeric_limits<int64_t>::max();
  };
  // Multiples of the register block of oneDNN's f32 kernel.
  constexpr int64_t kRowUnit = 8;
  constexpr int64_t kColumnUnit = 48;
  const auto half = [](int64_t size, int64_t unit) { return (size / 2 + unit - 1) / unit * unit; };
  Tiling tiling{m, n};
  for (int64_t tiles = 2;; tiles *= 2) {
    const int64_t area = tiling.rows * tiling.columns / 2;
    if (tiles > enough && 2 * area <= kNearArea) return tiling;
    const double work = 2.0 * static_cast<double>(area) * static_cast<double>(k);
    const bool rows_can = tiling.rows >= 4 * kRowUnit;
    const bool columns_can = tiling.columns >= 2 * kColumnUnit;
    if (work < kLeastWork || area < least_area(tiles) || !(rows_can || columns_can)) return tiling;
    // Halve the longer side, which minimises packing.
    if (rows_can && (tiling.rows >= tiling.columns || !columns_can)) {
      tiling.rows = half(tiling.rows, kRowUnit);
    } else {
      tiling.columns = half(tiling.columns, kColumnUnit);
    }
  }
}

template <class T>
const T* start_of(const Factor& factor, int64_t batch, int64_t row, int64_t column) {
  return static_cast<const T*>(factor.data) + batch * factor.batch_stride +
         (factor.transposed ? column * factor.ld + row : row * factor.ld + column);
}
template <class T>
T* result_of(const Product& p, const Tile& tile) {
  return static_cast<T*>(p.result) + tile.batch * p.batch_stride + tile.row * p.ld + tile.column;
}
template <class T>
const T* addend_of(const Product& p, const Tile& tile) {
  return static_cast<const T*>(p.addend.data) + tile.batch * p.addend.batch +
         tile.row * p.addend.row + tile.column * p.addend.column;
}

template <class T>
bool has_addend(const Product& p) {
  return p.addend.data != nullptr && p.beta.to<SumType<T>>() != SumType<T>(0);
}

/// result = beta addend; the product is then accumulated onto the tile while it is in the cache.
void start_with_addend(const Product& p, const Tile& tile) {
  const float beta = p.beta.to<float>();
  const float* addend = addend_of<float>(p, tile);
  float* result = result_of<float>(p, tile);
  if (addend == result && beta == 1 && p.addend.column == 1 && p.addend.row == p.ld) return;
  for (int64_t i = 0; i < tile.rows; ++i, addend += p.addend.row, result += p.ld) {
    if (p.addend.column == 1) {
      for (int64_t j = 0; j < tile.columns; ++j) result[j] = beta * addend[j];
    } else {
      for (int64_t j = 0; j < tile.columns; ++j) result[j] = beta * addend[j * p.addend.column];
    }
  }
}

/// Whether each element has the same bits however the product is cut into tiles: where its sum has
/// the order of ordered_product.h.
bool has_bits_of_any_tiles(const Product& p) {
  switch (p.dtype) {
    case DType::kF32:
      return !p.a.transposed && p.alpha.to<float>() == 1 && has_wide_vectors();
    case DType::kBF16:
      return !onednn::is_fast_in_bf16();
    default:
      return p.dtype == DType::kF16;
  }
}

/// c = alpha a b + beta c for a column a and a row b; bound by memory bandwidth.
void outer_product(int64_t m, int64_t n, float alpha, const float* a, int64_t a_row, const float* b,
                   float beta, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    const float factor = a[i * a_row];
    if (beta == 0) {
      for (int64_t j = 0; j < n; ++j) c[j] = alpha * (factor * b[j]);
    } else {
      for (int64_t j = 0; j < n; ++j) c[j] = std::fma(alpha, factor * b[j], beta * c[j]);
    }
  }
}

void compute_f32(const Product& p, const Tile& tile) {
  const float alpha = p.alpha.to<float>();
  float* const c = result_of<float>(p, tile);
  PackedProduct<float> product{p.a.transposed,
                               p.b.transposed,
                               tile.rows,
                               tile.columns,
                               p.k,
                               start_of<float>(p.a, tile.batch, tile.row, 0),
                               p.a.ld,
                               start_of<float>(p.b, tile.batch, 0, tile.column),
                               p.b.ld,
                               nullptr,
                               0,
                               c,
                               p.ld};
  const bool in_order = alpha == 1 && rows_are_exact(product);
  const bool add = has_addend<float>(p);
  if (add && in_order && p.beta.to<float>() == 1 && p.addend.column == 1) {
    product.addend = addend_of<float>(p, tile);
    product.addend_ld = p.addend.row;
  } else if (add) {
    start_with_addend(p, tile);
    product.addend = c;
    product.addend_ld = p.ld;
  }
  if (in_order) return multiply_in_order(product);
  gemm_block(p.a.transposed, p.b.transposed, product.m, product.n, product.k, alpha, product.a,
             product.lda, product.b, product.ldb, add ? 1.0F : 0.0F, c, p.ld);
}

/// result = alpha sums + beta addend, rounded once to R.
template <class T, class R = T>
void finish(const Product& p, const Tile& tile, const SumType<T>* sums, int64_t ld) {
  using S = SumType<T>;
  const S alpha = p.alpha.to<S>();
  const S beta = p.beta.to<S>();
  const bool add = has_addend<T>(p);
  const R* addend = add ? addend_of<R>(p, tile) : nullptr;
  R* result = result_of<R>(p, tile);
  for (int64_t i = 0; i < tile.rows; ++i, sums += ld, result += p.ld) {
    for (int64_t j = 0; j < tile.columns; ++j) {
      S value = alpha * sums[j];
      if (add) value += beta * convert<S>(addend[i * p.addend.row + j * p.addend.column]);
      result[j] = convert<R>(value);
    }
  }
}

template <class T>
void finish_halves(const Product& p, const Tile& tile, const float* sums, int64_t ld) {
  return p.wide ? finish<T, float>(p, tile, sums, ld) : finish<T>(p, tile, sums, ld);
}

/// Memory of this thread for the f32 sums of a tile. Fresh memory for each tile would cost more in
/// page faults than the sums themselves.
float* room_for_sums(const Tile& tile) {
  Workspace& workspace = thread_workspace(WorkspaceUse::kTileSums);
  const auto count = static_cast<size_t>(tile.rows * tile.columns);
  return static_cast<float*>(workspace.room(count * sizeof(float)));
}

/// The addend as the bias of each row: a row that broadcasts over the tile, taken as it is.
const BFloat16* bias_of(const Product& p, const Tile& tile) {
  const bool is_row = p.addend.row == 0 && p.addend.column == 1 && p.beta.to<float>() == 1.0F;
  return has_addend<BFloat16>(p) && is_row && !p.wide ? addend_of<BFloat16>(p, tile) : nullptr;
}

/// What `finish` does for results of 16 bits whose addend lies in rows, a row at a time in vectors.
template <class T>
void finish_rows(const Product& p, const Tile& tile, float* sums) {
  static const LoadFunction load = load_function(ComputeLane::kF32, dtype_of<T>);
  static const StoreFunction store = store_function(dtype_of<T>, ComputeLane::kF32);
  const int64_t columns = tile.columns;
  const float alpha = p.alpha.to<float>(), beta = p.beta.to<float>();
  const T* const addend = has_addend<T>(p) ? addend_of<T>(p, tile) : nullptr;
  auto* const wide = static_cast<float*>(thread_workspace(WorkspaceUse::kWideProduct)
                                             .room(static_cast<size_t>(columns) * sizeof(float)));
  T* result = result_of<T>(p, tile);
  for (int64_t i = 0; i < tile.rows; ++i, sums += columns, result += p.ld) {
    if (addend != nullptr) {
      if (i == 0 || p.addend.row != 0) load(columns, wide, addend + i * p.addend.row, sizeof(T));
      for (int64_t j = 0; j < columns; ++j) sums[j] = alpha * sums[j] + beta * wide[j];
    } else if (alpha != 1) {
      for (int64_t j = 0; j < columns; ++j) sums[j] *= alpha;
    }
    store(columns, result, sizeof(T), sums);
  }
}

/// Computes 16-bit elements in f32: where the processor has no products of them, or slower ones.
template <class T>
void compute_wide(const Product& p, const Tile& tile) {
  const bool is_result = p.wide && p.alpha.to<float>() == 1.0F && !has_addend<T>(p);
  float* const sums = is_result ? result_of<float>(p, tile) : room_for_sums(tile);
  const int64_t ld = is_result ? p.ld : tile.columns;
  if (p.k > 0) {
    multiply_packed<T>({p.a.transposed, p.b.transposed, tile.rows, tile.columns, p.k,
                        start_of<T>(p.a, tile.batch, tile.row, 0), p.a.ld,
                        start_of<T>(p.b, tile.batch, 0, tile.column), p.b.ld, nullptr, 0, sums,
                        ld});
  } else {
    for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(sums + i * ld, tile.columns, 0.0F);
  }
  if (is_result) return;
  if (p.wide || (has_addend<T>(p) && p.addend.column != 1)) {
    finish_halves<T>(p, tile, sums, ld);
  } else {
    finish_rows<T>(p, tile, sums);
  }
}

void compute_bf16(const Product& p, const Tile& tile) {
  if (!onednn::is_fast_in_bf16()) return compute_wide<BFloat16>(p, tile);
  const auto multiply = [&](const onednn::Bf16Result& result) {
    onednn::gemm_bf16(p.a.transposed, p.b.transposed, tile.rows, tile.columns, p.k,
                      start_of<BFloat16>(p.a, tile.batch, tile.row, 0), p.a.ld,
                      start_of<BFloat16>(p.b, tile.batch, 0, tile.column), p.b.ld, result);
  };
  const BFloat16* bias = bias_of(p, tile);
  const bool is_plain =
      p.alpha.to<float>() == 1.0F && (bias != nullptr || !has_addend<BFloat16>(p));
  if (p.k > 0 && is_plain) {
    if (p.wide) return multiply({result_of<float>(p, tile), p.ld, DType::kF32});
    return multiply({result_of<BFloat16>(p, tile), p.ld, DType::kBF16, bias});
  }
  float* sums = room_for_sums(tile);
  if (p.k > 0) {
    multiply({sums, tile.columns, DType::kF32});
  } else {
    std::fill_n(sums, tile.rows * tile.columns, 0.0F);
  }
  finish_halves<BFloat16>(p, tile, sums, tile.columns);
}

template <class T>
void compute_by_loop(const Product& p, const Tile& tile) {
  const GemmLoop<T> product(tile.rows, tile.columns, p.k, start_of<T>(p.a, tile.batch, tile.row, 0),
                            p.a, start_of<T>(p.b, tile.batch, 0, tile.column), p.b);
  finish<T>(p, tile, product.sums(), product.ld());
}

using Compute = void (*)(const Product&, const Tile&);

Compute compute_for(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return compute_f32;
    case DType::kF64:
      return compute_by_loop<double>;
    case DType::kBF16:
      return compute_bf16;
    case DType::kF16:
      return compute_wide<Half>;
    case DType::kI64:
      return compute_by_loop<int64_t>;
    case DType::kI32:
      return compute_by_loop<int32_t>;
    case DType::kI16:
      return compute_by_loop<int16_t>;
    case DType::kI8:
      return compute_by_loop<int8_t>;
    case DType::kU8:
      return compute_by_loop<uint8_t>;
    case DType::kBool:
      break;
  }
  throw DTypeError(
      "[gemm] matrices of bool have no product: expected numbers. Cast with to(dtype).");
}

}  // namespace

void gemm(const Product& p) {
  gemm(p, [](const Tile&) {});
}

void gemm(const Product& p, FunctionRef<void(const Tile&)> after) {
  if (p.batch <= 0 || p.m <= 0 || p.n <= 0) return;
  const Compute compute = compute_for(p.dtype);
  const int64_t enough =
      has_bits_of_any_tiles(p) ? 2 * num_threads() : std::numeric_limits<int64_t>::max();
  const auto [rows, columns] = tiling_of(p.m, p.n, p.k, enough);
  const int64_t across = (p.n + columns - 1) / columns;
  const int64_t down = (p.m + rows - 1) / rows;
  const int64_t tiles = across * down;
  // Neighbouring tiles share a block of the longer factor, so that each thread reads less of it.
  const bool by_rows = p.m >= p.n;
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const int64_t at = t % tiles;
      const int64_t row = (by_rows ? at / across : at % down) * rows;
      const int64_t column = (by_rows ? at % across : at / down) * columns;
      const Tile tile{t / tiles, row, column, std::min(rows, p.m - row),
                      std::min(columns, p.n - column)};
      compute(p, tile);
      after(tile);
    }
  };
  // Small matrices of a batch share a task: starting one pays off from about 0.2 MFLOP.
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
                      static_cast<double>(std::max<int64_t>(p.k, 1));
  parallel_for(0, p.batch * tiles, static_cast<int64_t>(std::max(1.0, 2e5 / work)), run);
}

void gemm_block(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  if (k == 1 && (!transpose_b || ldb == 1)) {
    return outer_product(m, n, alpha, a, transpose_a ? 1 : lda, b, beta, c, ldc);
  }
  // A oneDNN call costs about as much as this many multiply-adds.
  constexpr int64_t kTiny = 256;
  if (k > 0 && m * n * k > kTiny) {
    onednn::sgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  const int64_t a_row = transpose_a ? 1 : lda;
  const int64_t a_column = transpose_a ? lda : 1;
  const int64_t b_row = transpose_b ? 1 : ldb;
  const int64_t b_column = transpose_b ? ldb : 1;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum = std::fma(a[i * a_row + p * a_column], b[p * b_row + j * b_column], sum);
      }
      float& result = c[i * ldc + j];
      result = beta == 0 ? alpha * sum : std::fma(alpha, sum, beta * result);
    }
  }
}

}  // namespace lockstep::cpu
