#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep {

/// A factor of a product: row-major with leading dimension `ld`, or the transpose of such a matrix
/// (`ld` then separates columns). In a batch, matrix b starts `batch_stride` elements after the
/// previous one.
struct Factor {
  const void* data = nullptr;
  int64_t ld = 1;
  bool transposed = false;
  int64_t batch_stride = 0;
};

/// The tensor added to a product: element (b, i, j) lies at b * batch + i * row + j * column, so a
/// stride of 0 broadcasts. `data` may be the result's own memory with the same strides.
struct Addend {
  const void* data = nullptr;
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

/// result = alpha a b + beta addend, for matrices a [m, k], b [k, n] and a row-major result [m, n]
/// with leading dimension `ld`, all of one dtype unless `wide`. The addend is not read if beta = 0
/// or `data` is null; the result is read only if it is the addend. The result must not overlap a or
/// b.
struct Product {
  DType dtype = DType::kF32;
  bool wide = false;  ///< result and addend are f32, the factors bf16 or f16
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

/// The product a b of mm and bmm; the tensors are laid out as Strides::kMatrix requires.
Product product_of(const Out& out, const In& a, const In& b);
/// The product alpha a b + beta self of addmm and baddbmm; self broadcasts to the result.
Product product_of(const Out& out, const In& self, const In& a, const In& b, Scalar beta,
                   Scalar alpha);

/// The product input weight^T + bias of linear, for row-major tensors [..., in] and [out, in]; all
/// leading dimensions of the input are flattened into rows.
Product linear_product(const Out& out, const In& input, const In& weight, const In& bias);
/// The product grad weight, the gradient of linear's input. Row-major tensors [..., out] and [out,
/// in].
Product linear_input_product(const Out& out, const In& grad, const In& weight);
/// The product grad^T input, the gradient of linear's weight. Row-major matrices [rows, out] and
/// [rows, in].
Product linear_weight_product(const Out& out, const In& grad, const In& input);

/// Turns a batch that shares one matrix b into a single product over all rows of a, if these are
/// evenly spaced.
void join_rows(Product& product);

}  // namespace lockstep
