#include "core/ops/matmul/linalg.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

void check_vectors(std::string_view op, const Tensor& a, const Tensor& b) {
  LS_CHECK(a.dim() == 1 && b.dim() == 1, ShapeError,
           "[{}] expected two vectors, got shapes {} and {}.", op, a.shape(), b.shape());
}

Tensor cross_body(const Tensor& self, const Tensor& other, int64_t dim) {
  LS_CHECK(self.dim() == other.dim(), ShapeError,
           "[linalg_cross] expected tensors of as many dimensions, got shapes {} and {}.",
           self.shape(), other.shape());
  const int64_t d = wrap_dim("linalg_cross", dim, self.dim());
  LS_CHECK(self.dim() > 0 && self.size(d) == 3 && other.size(d) == 3, ShapeError,
           "[linalg_cross] expected size 3 along dimension {}, got shapes {} and {}.", d,
           self.shape(), other.shape());
  const auto part = [&](int i) {
    const int next = (i + 1) % 3, last = (i + 2) % 3;
    return self.select(d, next) * other.select(d, last) -
           self.select(d, last) * other.select(d, next);
  };
  return stack({part(0), part(1), part(2)}, d);
}

void check_part(std::string_view name, const Tensor& self, OptionalTensor part) {
  LS_CHECK(!part || part->dim() == self.dim(), ShapeError,
           "[diff] {} must have as many dimensions as self: expected {}, got shape {}.", name,
           self.dim(), part->shape());
}

Tensor diff_body(const Tensor& self, int64_t n, int64_t dim, OptionalTensor prepend,
                 OptionalTensor append) {
  LS_CHECK(self.dim() >= 1, ShapeError,
           "[diff] expected at least one dimension, got a 0-d tensor.");
  LS_CHECK(n >= 0, ShapeError, "[diff] n must not be negative, got {}.", n);
  check_part("prepend", self, prepend);
  check_part("append", self, append);
  const int64_t d = wrap_dim("diff", dim, self.dim());
  if (n == 0) return self.clone();
  Tensor result = self;
  if (prepend && append) {
    result = cat({*prepend, self, *append}, d);
  } else if (prepend || append) {
    result = prepend ? cat({*prepend, self}, d) : cat({self, *append}, d);
  }
  for (int64_t left = std::min(n, result.size(d)); left > 0; --left) {
    const int64_t length = result.size(d) - 1;
    const Tensor later = narrow(result, d, 1, length);
    const Tensor earlier = narrow(result, d, 0, length);
    result = result.dtype() == DType::kBool ? ne(later, earlier) : later - earlier;
  }
  return result;
}

}  // namespace

LS_OP(trace, Tensor(const Tensor&), "trace(Tensor self) -> Tensor")
    .doc("Sum of the diagonal of a matrix.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self) {
      LS_CHECK(self.dim() == 2, ShapeError, "[trace] expected a matrix, got shape {}.",
               self.shape());
      return sum(diagonal(self));
    });
Tensor trace(const Tensor& self) { return op_trace(self); }

LS_OP(trace_out, const Tensor&(const Tensor&, const Tensor&),
      "trace.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("trace, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_trace(self));
    });

LS_OP(outer, Tensor(const Tensor&, const Tensor&), "outer(Tensor self, Tensor vec2) -> Tensor")
    .doc("Outer product of two vectors.")
    .composite([](const Tensor& self, const Tensor& vec2) {
      check_vectors("outer", self, vec2);
      return self.unsqueeze(1) * vec2;
    });
Tensor outer(const Tensor& self, const Tensor& vec2) { return op_outer(self, vec2); }

LS_OP(outer_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "outer.out(Tensor self, Tensor vec2, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("outer, written into out.")
    .composite([](const Tensor& self, const Tensor& vec2, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_outer(self, vec2));
    });

LS_OP(addr, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .doc("beta * self + alpha * outer(vec1, vec2).")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta,
                  Scalar alpha) {
      check_vectors("addr", vec1, vec2);
      rules::check_alpha("addr", vec1.dtype(), beta, "beta");
      rules::check_alpha("addr", vec1.dtype(), alpha);
      return addmm(self, vec1.unsqueeze(1), vec2.unsqueeze(0), beta, alpha);
    });
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  return op_addr(self, vec1, vec2, beta, alpha);
}

LS_OP(addr_in_place, const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor(a!)")
    .doc("addr, written into self.")
    .composite([](const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta,
                  Scalar alpha) -> const Tensor& {
      return copy_(self, op_addr(self, vec1, vec2, beta, alpha));
    });

LS_OP(addr_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&),
      "addr.out(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("addr, written into out.")
    .composite([](const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta,
                  Scalar alpha, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_addr(self, vec1, vec2, beta, alpha));
    });

LS_OP(addbmm, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor")
    .doc("beta * self + alpha * the sum of the products of a batch of matrices.")
    .autocast(Autocast::kLowerPrecision)
    .composite([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                  Scalar alpha) {
      LS_CHECK(batch1.dim() == 3 && batch2.dim() == 3 && batch1.size(0) == batch2.size(0) &&
                   batch1.size(2) == batch2.size(1),
               ShapeError,
               "[addbmm] expected batches [b, n, k] and [b, k, m], got shapes {} and {}.",
               batch1.shape(), batch2.shape());
      rules::check_factor("addbmm", "beta", batch1.dtype(), beta);
      rules::check_factor("addbmm", "alpha", batch1.dtype(), alpha);
      if (!is_floating(batch1.dtype())) {
        beta = beta.to_int();
        alpha = alpha.to_int();
      }
      // One product that sums over the batch and the inner dimension together.
      const int64_t rows = batch1.size(1), columns = batch2.size(2);
      const int64_t inner = batch1.size(0) * batch1.size(2);
      return addmm(self, batch1.transpose(0, 1).reshape({rows, inner}),
                   batch2.reshape({inner, columns}), beta, alpha);
    });
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  return op_addbmm(self, batch1, batch2, beta, alpha);
}

LS_OP(addbmm_in_place, const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar),
      "addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor(a!)")
    .doc("addbmm, written into self.")
    .composite([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                  Scalar alpha) -> const Tensor& {
      return copy_(self, op_addbmm(self, batch1, batch2, beta, alpha));
    });

LS_OP(addbmm_out,
      const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar, const Tensor&),
      "addbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("addbmm, written into out.")
    .composite([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                  Scalar alpha, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_addbmm(self, batch1, batch2, beta, alpha));
    });

LS_OP(linalg_cross, Tensor(const Tensor&, const Tensor&, int64_t),
      "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
    .doc("Cross product of vectors of 3 elements along a dimension.")
    .composite(cross_body);
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  return op_linalg_cross(self, other, dim);
}

LS_OP(linalg_cross_out, const Tensor&(const Tensor&, const Tensor&, int64_t, const Tensor&),
      "linalg_cross.out(Tensor self, Tensor other, *, int dim=-1, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_cross, written into out.")
    .composite([](const Tensor& self, const Tensor& other, int64_t dim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_cross(self, other, dim));
    });

LS_OP(cross, Tensor(const Tensor&, const Tensor&, std::optional<int64_t>),
      "cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
    .doc("linalg_cross, by default along the first dimension of size 3.")
    .autocast(Autocast::kPromote)
    .composite([](const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
      if (dim) return op_linalg_cross(self, other, *dim);
      const IntList sizes = self.sizes();
      const auto found = std::find(sizes.begin(), sizes.end(), 3);
      LS_CHECK(found != sizes.end(), ShapeError,
               "[cross] expected a dimension of size 3, got shape {}.", self.shape());
      return op_linalg_cross(self, other, found - sizes.begin());
    });
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  return op_cross(self, other, dim);
}

LS_OP(cross_out, const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, const Tensor&),
      "cross.out(Tensor self, Tensor other, int? dim=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("cross, written into out.")
    .composite([](const Tensor& self, const Tensor& other, std::optional<int64_t> dim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_cross(self, other, dim));
    });

LS_OP(diff, Tensor(const Tensor&, int64_t, int64_t, OptionalTensor, OptionalTensor),
      "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
    .doc("The n-th difference of adjacent elements along a dimension.")
    .composite(diff_body);
Tensor diff(const Tensor& self, int64_t n, int64_t dim, OptionalTensor prepend,
            OptionalTensor append) {
  return op_diff(self, n, dim, prepend, append);
}

LS_OP(diff_out,
      const Tensor&(const Tensor&, int64_t, int64_t, OptionalTensor, OptionalTensor, const Tensor&),
      "diff.out(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("diff, written into out.")
    .composite([](const Tensor& self, int64_t n, int64_t dim, OptionalTensor prepend,
                  OptionalTensor append, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_diff(self, n, dim, prepend, append));
    });

}  // namespace lockstep
