// Powers, exponentials and chains of products of matrices; declared in matrix_functions.h.

#include <limits>
#include <vector>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/linalg/batching_matrices.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/matrix_functions.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

Outputs linalg_matrix_exp(const Tensor& self) {
  require_square("linalg_matrix_exp", self);
  return one(self.sizes(), self.dtype());
}

}  // namespace
}  // namespace rules

namespace {

/// The product of n > 0 factors, by squaring.
Tensor product_of_equal(Tensor factor, uint64_t n) {
  Tensor result;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = result.defined() ? matmul(result, factor) : factor;
    if (n > 1) factor = matmul(factor, factor);
  }
  return result;
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  LS_CHECK(self.dim() >= 2 && self.size(-2) == self.size(-1), ShapeError,
           "[linalg_matrix_power] expected square matrices, got shape {}.", self.shape());
  LS_CHECK(self.dtype() != DType::kBool, DTypeError,
           "[linalg_matrix_power] expected numbers, got bool. Cast it with to(dtype).");
  if (n == 0) {  // a copy, so that it belongs to the graph and has a gradient of zeros
    const Tensor result = self.clone();
    return copy_(result, identity(self.size(-1), self.options()).expand(self.sizes()));
  }
  if (n == 1) return self.clone();
  if (n > 0) return product_of_equal(self, static_cast<uint64_t>(n));
  return product_of_equal(linalg_inv(self), uint64_t{0} - static_cast<uint64_t>(n));
}

/// The cheapest order of a chain of products: the matrices i..j are split after the one at `at`.
class ChainOrder {
 public:
  /// Matrix i is [sizes[i], sizes[i + 1]].
  explicit ChainOrder(const std::vector<int64_t>& sizes) : count_(sizes.size() - 1) {
    cost_.assign(count_ * count_, 0.0);
    split_.assign(count_ * count_, 0);
    for (size_t length = 1; length < count_; ++length) {
      for (size_t i = 0; i + length < count_; ++i) find(sizes, i, i + length);
    }
  }

  Tensor product(const std::vector<Tensor>& matrices, size_t i, size_t j) const {
    if (i == j) return matrices[i];
    const size_t split = split_[i * count_ + j];
    return mm(product(matrices, i, split), product(matrices, split + 1, j));
  }

 private:
  void find(const std::vector<int64_t>& sizes, size_t i, size_t j) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t at = i; at < j; ++at) {
      const double cost = cost_[i * count_ + at] + cost_[(at + 1) * count_ + j] +
                          static_cast<double>(sizes[i]) * static_cast<double>(sizes[at + 1]) *
                              static_cast<double>(sizes[j + 1]);
      if (cost >= least) continue;
      least = cost;
      split_[i * count_ + j] = at;
    }
    cost_[i * count_ + j] = least;
  }

  size_t count_;
  std::vector<double> cost_;
  std::vector<size_t> split_;
};

Tensor multi_dot(TensorList tensors) {
  const size_t count = tensors.size();
  LS_CHECK(count >= 2, ShapeError, "[linalg_multi_dot] expected at least two tensors, got {}.",
           count);
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = matrices.front().unsqueeze(0);
  if (column) matrices.back() = matrices.back().unsqueeze(-1);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& each = matrices[i];
    LS_CHECK(each.dim() == 2, ShapeError,
             "[linalg_multi_dot] tensor {} must be a matrix (the first and the last may be "
             "vectors), got shape {}.",
             i, tensors[i].shape());
    rules::require_one_dtype("linalg_multi_dot", matrices.front(), each);
    LS_CHECK(i == 0 || each.size(0) == matrices[i - 1].size(1), ShapeError,
             "[linalg_multi_dot] inner sizes of tensors {} and {} differ: got shapes {} and {}.",
             i - 1, i, tensors[i - 1].shape(), tensors[i].shape());
    sizes.push_back(each.size(0));
  }
  sizes.push_back(matrices.back().size(1));
  Tensor result = ChainOrder(sizes).product(matrices, 0, count - 1);
  if (column) result = result.squeeze(-1);
  return row ? result.squeeze(0) : result;
}

}  // namespace

LS_OP(linalg_matrix_power, Tensor(const Tensor&, int64_t),
      "linalg_matrix_power(Tensor self, int n) -> Tensor")
    .doc("Integer powers of matrices.")
    .autocast(Autocast::kF32)
    .composite(matrix_power);
Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  return op_linalg_matrix_power(self, n);
}

LS_OP(linalg_matrix_power_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "linalg_matrix_power.out(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_matrix_power, written into out.")
    .composite([](const Tensor& self, int64_t n, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_matrix_power(self, n));
    });

LS_OP(linalg_matrix_exp, Tensor(const Tensor&), "linalg_matrix_exp(Tensor self) -> Tensor")
    .doc("The exponential function of matrices.")
    .structured(rules::linalg_matrix_exp)
    .batching(batching::matrices)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      // The upper right block of exp([[A^T, G], [0, A^T]]) is the derivative of exp at A^T in the
      // direction G (Mathias 1996).
      return ctx.gradients([&] {
        const Tensor at = transposed(ctx.saved(0));
        const int64_t n = at.size(-1);
        const Tensor above = cat({at, grad}, -1);
        const Tensor below = cat({zeros(at.sizes(), at.options()), at}, -1);
        const Tensor whole = linalg_matrix_exp(cat({above, below}, -2));
        return narrow(narrow(whole, -2, 0, n), -1, n, n);
      });
    });
Tensor linalg_matrix_exp(const Tensor& self) { return op_linalg_matrix_exp(self); }

LS_OP(linalg_multi_dot, Tensor(TensorList), "linalg_multi_dot(Tensor[] tensors) -> Tensor")
    .doc("The product of several matrices, in the cheapest order.")
    .autocast(Autocast::kLowerPrecision)
    .composite(multi_dot);
Tensor linalg_multi_dot(TensorList tensors) { return op_linalg_multi_dot(tensors); }

LS_OP(linalg_multi_dot_out, const Tensor&(TensorList, const Tensor&),
      "linalg_multi_dot.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_multi_dot, written into out.")
    .composite([](TensorList tensors, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_multi_dot(tensors));
    });

}  // namespace lockstep
