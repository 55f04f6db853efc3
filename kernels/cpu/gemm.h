#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/scalar.h"

namespace lockstep::cpu {

/// A factor of a product: row-major with leading dimension `ld`, or the transpose of such a matrix
/// (then `ld` separates columns). With a batch, matrix b starts `batch_stride` elements after b
/// - 1.
struct Factor {
  const void* data = nullptr;
  int64_t ld = 1;
  bool transposed = false;
  int64_t batch_stride = 0;
};

/// What is added to a product: element (b, i, j) lies at b * batch + i * row + j * column, so that
/// a stride of 0 broadcasts. `data` may be the result's own memory, element for element.
struct Addend {
  const void* data = nullptr;
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

/// result = alpha a b + beta addend, for matrices a [m, k], b [k, n] and a row-major result [m, n]
/// with leading dimension `ld`, all of one dtype. With beta = 0 or without data the addend is not
/// read; otherwise the result is not read. The result overlaps neither factor.
struct Product {
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Factor a;
  Factor b;
  Scalar alpha = 1;
  Addend addend;
  Scalar beta = 0;
  void* result = nullptr;
  int64_t ld = 1;
  int64_t batch_stride = 0;
};

/// Computes a product on up to num_threads() threads. It is cut into tiles by m, n and k alone, and
/// each tile is computed whole by one thread, so the bits do not depend on the number of threads.
/// f32 goes to oneDNN, bf16 and (by way of f32) f16 too, with f32 sums, rounded once; f64 and
/// integers to a loop of ours.
/// Throws DTypeError for bool.
void gemm(const Product& product);

/// c = alpha op(a) op(b) + beta c on the calling thread, f32: what kernels that are parallel
/// themselves call for their blocks. c is not read when beta is 0.
void gemm_block(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                int64_t ldc);

}  // namespace lockstep::cpu
