// Products of vectors, matrices and tensors; declared in matrix_functions.h.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/matrix_functions.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

Tensor inner_body(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  LS_CHECK(self.size(-1) == other.size(-1), ShapeError,
           "[inner] last dimensions differ: expected one size, got shapes {} and {}.", self.shape(),
           other.shape());
  const int64_t n = self.size(-1);
  const IntList left = self.sizes().first(self.sizes().size() - 1);
  const IntList right = other.sizes().first(other.sizes().size() - 1);
  Dims sizes = to_dims(left);
  sizes.append(right.begin(), right.end());
  const Tensor product =
      mm(self.reshape({count_elements(left), n}), other.reshape({count_elements(right), n}).t());
  return product.reshape(sizes);
}

/// The tensor with `rank` dimensions, each followed or preceded by one of size 1.
Tensor spread(const Tensor& tensor, int64_t rank, bool followed) {
  Dims sizes;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t own = i - (rank - tensor.dim());
    const int64_t size = own < 0 ? 1 : tensor.size(own);
    sizes.push_back(followed ? size : 1);
    sizes.push_back(followed ? 1 : size);
  }
  return tensor.reshape(sizes);
}

Tensor kron_body(const Tensor& self, const Tensor& other) {
  const int64_t rank = std::max(self.dim(), other.dim());
  const Tensor product = spread(self, rank, true) * spread(other, rank, false);
  Dims sizes;
  for (int64_t i = 0; i < rank; ++i) sizes.push_back(product.size(2 * i) * product.size(2 * i + 1));
  return product.reshape(sizes);
}

void check_bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                    OptionalTensor bias) {
  const auto leading = [](const Tensor& tensor) {
    return tensor.sizes().first(tensor.sizes().size() - 1);
  };
  LS_CHECK(
      input1.dim() >= 1 && input1.dim() == input2.dim() && same(leading(input1), leading(input2)),
      ShapeError, "[bilinear] expected inputs with equal leading sizes, got shapes {} and {}.",
      input1.shape(), input2.shape());
  LS_CHECK(
      weight.dim() == 3 && weight.size(1) == input1.size(-1) && weight.size(2) == input2.size(-1),
      ShapeError, "[bilinear] expected a weight [out, {}, {}], got shape {}.", input1.size(-1),
      input2.size(-1), weight.shape());
  LS_CHECK(!bias || (bias->dim() == 1 && bias->size(0) == weight.size(0)), ShapeError,
           "[bilinear] expected a bias [{}], got shape {}.", weight.size(0), bias->shape());
}

Tensor bilinear_body(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                     OptionalTensor bias) {
  check_bilinear(input1, input2, weight, bias);
  const int64_t n1 = weight.size(1), n2 = weight.size(2), out = weight.size(0);
  Dims sizes = to_dims(input1.sizes().first(input1.sizes().size() - 1));
  const int64_t count = count_elements(sizes);
  sizes.push_back(out);
  const Tensor by_first = weight.permute({1, 0, 2}).reshape({n1, out * n2});
  const Tensor half = mm(input1.reshape({count, n1}), by_first).reshape({count, out, n2});
  const Tensor result = matmul(half, input2.reshape({count, n2, 1})).reshape(sizes);
  return bias ? result + *bias : result;
}

}  // namespace

LS_OP(inner, Tensor(const Tensor&, const Tensor&), "inner(Tensor self, Tensor other) -> Tensor")
    .doc("Products of the vectors along the last dimensions.")
    .autocast(Autocast::kLowerPrecision)
    .composite(inner_body);
Tensor inner(const Tensor& self, const Tensor& other) { return op_inner(self, other); }

LS_OP(inner_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "inner.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("inner, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_inner(self, other));
    });

LS_OP(vdot, Tensor(const Tensor&, const Tensor&), "vdot(Tensor self, Tensor other) -> Tensor")
    .doc("The product of two vectors.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& other) {
      LS_CHECK(self.dim() == 1 && other.dim() == 1 && self.size(0) == other.size(0), ShapeError,
               "[vdot] expected two vectors of one size, got shapes {} and {}.", self.shape(),
               other.shape());
      return dot(self, other);
    });
Tensor vdot(const Tensor& self, const Tensor& other) { return op_vdot(self, other); }

LS_OP(vdot_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "vdot.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("vdot, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_vdot(self, other));
    });

LS_OP(kron, Tensor(const Tensor&, const Tensor&), "kron(Tensor self, Tensor other) -> Tensor")
    .doc("Kronecker's product.")
    .composite(kron_body);
Tensor kron(const Tensor& self, const Tensor& other) { return op_kron(self, other); }

LS_OP(kron_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "kron.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("kron, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_kron(self, other));
    });

LS_OP(bilinear, Tensor(const Tensor&, const Tensor&, const Tensor&, OptionalTensor),
      "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
    .doc("A bilinear form of two inputs for each output.")
    .autocast(Autocast::kPromote)
    .composite(bilinear_body);
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                OptionalTensor bias) {
  return op_bilinear(input1, input2, weight, bias);
}

}  // namespace lockstep
