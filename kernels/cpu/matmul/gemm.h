#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "kernels/common/gemm_product.h"

namespace lockstep::cpu {

/// Computes a product on up to num_threads() threads. It is cut into tiles by m, n and k alone, and
/// each tile is computed whole by one thread, so the bits do not depend on the number of threads.
/// f32 goes to oneDNN, bf16 and (by way of f32) f16 too, with f32 sums, rounded once; f64 and
/// integers to a loop of ours.
/// Throws DTypeError for bool.
void gemm(const Product& product);

/// A part of a product's result: of one matrix of the batch, rows and columns from the given ones
/// on.
struct Tile {
  int64_t batch;
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

/// The same, and calls `after` with each tile of the result as soon as it is computed, on the
/// thread that did: it is in that one's cache. Together the tiles cover the result once.
void gemm(const Product& product, FunctionRef<void(const Tile&)> after);

/// c = alpha op(a) op(b) + beta c on the calling thread, f32: what kernels that are parallel
/// themselves call for their blocks. c is not read when beta is 0.
void gemm_block(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                int64_t ldc);

}  // namespace lockstep::cpu
