#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "kernels/common/gemm_product.h"

namespace lockstep::cpu {

/// Computes a product on up to num_threads() threads. The tiling depends on m, n and k only, and
/// each tile is computed by one thread, so the bits do not depend on the number of threads. f32
/// uses oneDNN, and so does bf16 where the processor multiplies it faster than f32; elsewhere bf16,
/// and f16, use multiply_packed. Their sums are f32, and rounded once. f64 and integers use
/// GemmLoop. Throws DTypeError for bool.
void gemm(const Product& product);

/// A rectangular part of one matrix of a product's result, starting at `row` and `column`.
struct Tile {
  int64_t batch;
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

/// Computes a product and calls `after` with each tile of the result on the thread that has just
/// computed it, while it is in that core's cache. The tiles cover the result exactly once.
void gemm(const Product& product, FunctionRef<void(const Tile&)> after);

/// c = alpha op(a) op(b) + beta c in f32, on the calling thread: for kernels that parallelise over
/// their own blocks. c is not read if beta is 0.
void gemm_block(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                int64_t ldc);

}  // namespace lockstep::cpu
