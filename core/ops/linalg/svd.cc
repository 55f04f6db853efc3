// Singular values; declared in factorize.h.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/linalg/batching_matrices.h"
#include "core/ops/linalg/factorize.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using Driver = std::optional<std::string_view>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

}  // namespace

namespace rules {
namespace {

Outputs linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv, Driver driver) {
  require_matrices("linalg_svd", A);
  LS_CHECK(!driver, Error,
           "[linalg_svd] driver chooses an algorithm of GPU libraries: expected none, got \"{}\".",
           *driver);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntList batch = batch_sizes(A);
  Outputs outputs;
  add_output(outputs, compute_uv ? matrix_sizes(batch, m, full_matrices ? m : k) : Dims{0},
             A.dtype());
  Dims values = to_dims(batch);
  values.push_back(k);
  add_output(outputs, values, A.dtype());
  add_output(outputs, compute_uv ? matrix_sizes(batch, full_matrices ? n : k, n) : Dims{0},
             A.dtype());
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

Tensor skew(const Tensor& matrices) { return matrices - transposed(matrices); }

/// The gradient of A = U diag(S) Vh with k = min(m, n) vectors on each side:
/// U (skew(U^T gU) / E S + S skew(Vh gVh^T) / E + diag(gS)) Vh, with E[i][j] = S[j]^2 - S[i]^2
/// outside of the diagonal, and the parts of gU and gVh that are orthogonal to the vectors.
Tensor svd_gradient(const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_vh,
                    const Tensor& u, const Tensor& s, const Tensor& vh) {
  if (!grad_u.defined() && !grad_vh.defined()) {
    return matmul(u * grad_s.unsqueeze(-2), vh);
  }
  const Tensor ut = transposed(u), v = transposed(vh);
  const Tensor squares = s * s;
  const Tensor gaps =
      squares.unsqueeze(-2) - squares.unsqueeze(-1) + identity(s.size(-1), s.options());
  Tensor inner, left, right;
  if (grad_u.defined()) {
    inner = skew(matmul(ut, grad_u)) / gaps * s.unsqueeze(-2);
    const Tensor scaled = grad_u / s.unsqueeze(-2);
    left = scaled - matmul(u, matmul(ut, scaled));
  }
  if (grad_vh.defined()) {
    inner = added(inner, s.unsqueeze(-1) * (skew(matmul(vh, transposed(grad_vh))) / gaps));
    const Tensor scaled = grad_vh / s.unsqueeze(-1);
    right = scaled - matmul(matmul(scaled, v), vh);
  }
  if (grad_s.defined()) inner = inner + diag_embed(grad_s);
  Tensor grad = matmul(matmul(u, inner), vh);
  if (left.defined() && u.size(-2) > u.size(-1)) grad = grad + matmul(left, vh);
  if (right.defined() && vh.size(-1) > vh.size(-2)) grad = grad + matmul(u, right);
  return grad;
}

/// The first k columns or rows of a gradient, where it exists.
Tensor first(const Tensor& grad, int64_t dim, int64_t k) {
  return grad.defined() ? narrow(grad, dim, 0, k) : Tensor();
}

}  // namespace

LS_OP(linalg_svd_parts, ThreeTensors(const Tensor&, bool, bool, Driver),
      "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
      "-> (Tensor U, Tensor S, Tensor Vh)")
    .doc("Singular values in descending order, and singular vectors if asked for.")
    .structured(rules::linalg_svd)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"output0", "output1", "output2"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      LS_CHECK(ctx.argument<bool>(2), Error,
               "[linalg_svd] the derivative needs the singular vectors: expected compute_uv = "
               "true.");
      return ctx.gradients([&] {
        const Tensor& s = ctx.saved(1);
        const int64_t k = s.size(-1);
        return svd_gradient(first(grads[0], -1, k), grads[1], first(grads[2], -2, k),
                            narrow(ctx.saved(0), -1, 0, k), s, narrow(ctx.saved(2), -2, 0, k));
      });
    });

LS_OP(linalg_svd, ThreeTensors(const Tensor&, bool, Driver),
      "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, "
      "Tensor Vh)")
    .doc("Singular values in descending order, and singular vectors.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, bool full_matrices, Driver driver) {
      return op_linalg_svd_parts(a, full_matrices, true, driver);
    });
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices, Driver driver) {
  return op_linalg_svd(A, full_matrices, driver);
}

LS_OP(linalg_svd_out,
      ThreeTensors(const Tensor&, bool, Driver, const Tensor&, const Tensor&, const Tensor&),
      "linalg_svd.U(Tensor A, bool full_matrices=True, *, str? driver=None, Tensor(a!) U, "
      "Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)")
    .doc("linalg_svd, written into U, S and Vh.")
    .composite([](const Tensor& a, bool full_matrices, Driver driver, const Tensor& u,
                  const Tensor& s, const Tensor& vh) {
      return write_results(op_linalg_svd(a, full_matrices, driver), u, s, vh);
    });

LS_OP(linalg_svdvals, Tensor(const Tensor&, Driver),
      "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
    .doc("Singular values in descending order.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, Driver driver) {
      return std::get<1>(op_linalg_svd_parts(a, false, may_need_gradient(a), driver));
    });
Tensor linalg_svdvals(const Tensor& A, Driver driver) { return op_linalg_svdvals(A, driver); }

LS_OP(linalg_svdvals_out, const Tensor&(const Tensor&, Driver, const Tensor&),
      "linalg_svdvals.out(Tensor A, *, str? driver=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_svdvals, written into out.")
    .composite([](const Tensor& a, Driver driver, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_svdvals(a, driver));
    });

}  // namespace lockstep
