#include "kernels/common/gemm_product.h"

#include <algorithm>

#include "core/tensor/shape.h"

namespace lockstep {

namespace {

/// Describes the last two dimensions of a row- or column-major tensor and its batch stride.
Factor factor_of(const In& in) {
  const int64_t rows = in.size(-2);
  const int64_t columns = in.size(-1);
  Factor factor;
  factor.data = in.address;
  if (in.rank == 3) factor.batch_stride = in.stride(0);
  const bool row_major = in.contiguous || ((in.stride(-1) == 1 || columns == 1) &&
                                           (in.stride(-2) >= columns || rows == 1));
  factor.transposed = !row_major;
  // The stride of a dimension of size 1 is arbitrary, so it is not used.
  const int64_t lines = row_major ? rows : columns;
  const int64_t length = row_major ? columns : rows;
  factor.ld = std::max<int64_t>({1, length, lines > 1 ? in.stride(row_major ? -2 : -1) : 0});
  return factor;
}

Addend addend_of(const Out& out, const In& self) {
  const Dims strides = broadcast_strides(self.sizes(), self.strides(), out.sizes());
  return {self.address, out.rank == 3 ? strides[0] : 0, strides[strides.size() - 2],
          strides[strides.size() - 1]};
}

}  // namespace

Product product_of(const Out& out, const In& a, const In& b) {
  Product product;
  product.dtype = out.dtype;
  product.batch = out.rank == 3 ? out.size(0) : 1;
  product.m = out.size(-2);
  product.n = out.size(-1);
  product.k = a.size(-1);
  product.a = factor_of(a);
  product.b = factor_of(b);
  product.result = out.address;
  product.ld = std::max<int64_t>(1, product.n);
  product.batch_stride = product.m * product.n;
  return product;
}

Product product_of(const Out& out, const In& self, const In& a, const In& b, Scalar beta,
                   Scalar alpha) {
  Product product = product_of(out, a, b);
  product.alpha = alpha;
  product.beta = beta;
  product.addend = addend_of(out, self);
  return product;
}

Product linear_input_product(const Out& out, const In& grad, const In& weight) {
  Product product;
  product.dtype = grad.dtype;
  product.n = out.size(-1);
  product.m = product.n == 0 ? 0 : out.numel / product.n;
  product.k = grad.size(-1);
  product.a = {grad.address, std::max<int64_t>(1, product.k)};
  product.b = {weight.address, std::max<int64_t>(1, weight.size(1))};
  product.result = out.address;
  product.ld = std::max<int64_t>(1, product.n);
  return product;
}

Product linear_product(const Out& out, const In& input, const In& weight, const In& bias) {
  Product product = linear_input_product(out, input, weight);
  product.b.transposed = true;
  if (!bias.defined()) return product;
  product.addend = {bias.address, 0, 0, 1};
  product.beta = 1;
  return product;
}

Product linear_weight_product(const Out& out, const In& grad, const In& input) {
  Product product;
  product.dtype = grad.dtype;
  product.m = out.size(0);
  product.n = out.size(1);
  product.k = grad.size(0);
  product.a = {grad.address, std::max<int64_t>(1, product.m), /*transposed=*/true};
  product.b = {input.address, std::max<int64_t>(1, product.n)};
  product.result = out.address;
  product.ld = std::max<int64_t>(1, product.n);
  return product;
}

void join_rows(Product& p) {
  if (p.batch <= 1 || p.m <= 0 || p.b.batch_stride != 0 || p.a.transposed) return;
  const auto even = [&](int64_t batch, int64_t row) { return p.m == 1 || batch == p.m * row; };
  if (!even(p.a.batch_stride, p.a.ld) || !even(p.addend.batch, p.addend.row)) return;
  if (p.m == 1) {
    if (p.a.batch_stride < p.k) return;
    p.a.ld = std::max<int64_t>(1, p.a.batch_stride);
    p.addend.row = p.addend.batch;
  }
  p.m *= p.batch;
  p.batch = 1;
}

}  // namespace lockstep
