#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/scalar.h"

namespace lockstep {

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

/// a b as mm and bmm have it, of tensors as Strides::kMatrix gives them.
Product product_of(const Out& out, const In& a, const In& b);
/// alpha a b + beta self as addmm and baddbmm have it; self stretches to the result.
Product product_of(const Out& out, const In& self, const In& a, const In& b, Scalar beta,
                   Scalar alpha);

/// input weight^T + bias as linear has it, of row-major tensors [..., in] and [out, in]; the rows
/// are those of all leading dimensions.
Product linear_product(const Out& out, const In& input, const In& weight, const In& bias);
/// grad weight: what a linear layer's input gets. Row-major tensors [..., out] and [out, in].
Product linear_input_product(const Out& out, const In& grad, const In& weight);

/// One matrix b for the whole batch is one product with all rows of a, where these lie evenly.
void join_rows(Product& product);

}  // namespace lockstep
