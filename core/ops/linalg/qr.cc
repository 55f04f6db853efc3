// QR factorizations; declared in factorize.h.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/batching_matrices.h"
#include "core/ops/linalg/factorize.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace rules {
namespace {

Outputs linalg_qr(const Tensor& A, std::string_view mode) {
  require_matrices("linalg_qr", A);
  LS_CHECK(mode == "reduced" || mode == "complete" || mode == "r", Error,
           "[linalg_qr] expected a mode of \"reduced\", \"complete\" or \"r\", got \"{}\".", mode);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntList batch = batch_sizes(A);
  const int64_t width = mode == "complete" ? m : k;
  Outputs outputs;
  add_output(outputs, mode == "r" ? Dims{0} : matrix_sizes(batch, m, width), A.dtype());
  add_output(outputs, matrix_sizes(batch, width, n), A.dtype());
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// The gradient of A = Q R with at least as many rows as columns:
/// (gQ + Q mirror(R gR^T - gQ^T Q)) R^-T, where mirror repeats the lower triangle above it.
Tensor tall_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& q, const Tensor& r) {
  Tensor inner;
  if (grad_r.defined()) inner = matmul(r, transposed(grad_r));
  if (grad_q.defined()) inner = added(inner, -matmul(transposed(grad_q), q));
  const Tensor mirrored = tril(inner) + transposed(tril(inner, -1));
  return linalg_solve_triangular(transposed(r), added(grad_q, matmul(q, mirrored)), false, false);
}

/// A = [X Y] with a square X = Q U and Y = Q V, so V = Q^T Y is a function of Q and Y.
Tensor wide_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& a, const Tensor& q,
                     const Tensor& r) {
  const int64_t m = a.size(-2), rest = a.size(-1) - m;
  const Tensor u = narrow(r, -1, 0, m);
  if (!grad_r.defined()) {
    const Tensor x = tall_gradient(grad_q, {}, q, u);
    return cat({x, narrow(a, -1, m, rest) * 0}, -1);
  }
  const Tensor grad_u = narrow(grad_r, -1, 0, m), grad_v = narrow(grad_r, -1, m, rest);
  const Tensor of_q = matmul(narrow(a, -1, m, rest), transposed(grad_v));
  return cat({tall_gradient(added(grad_q, of_q), grad_u, q, u), matmul(q, grad_v)}, -1);
}

}  // namespace

LS_OP(linalg_qr, TwoTensors(const Tensor&, std::string_view),
      "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)")
    .doc("QR factorizations by Householder's reflections.")
    .structured(rules::linalg_qr)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"A", "output0", "output1"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const std::string_view mode = ctx.argument<std::string_view>(1);
      const Tensor& a = ctx.saved(0);
      const int64_t m = a.size(-2), n = a.size(-1);
      LS_CHECK(mode != "r", Error,
               "[linalg_qr] mode \"r\" has no derivative, because Q is not there: expected mode "
               "\"reduced\".");
      LS_CHECK(mode != "complete" || m <= n, Error,
               "[linalg_qr] mode \"complete\" has no derivative for more rows than columns: got "
               "shape {}. Use mode \"reduced\".",
               a.shape());
      return ctx.gradients([&] {
        const Tensor& q = ctx.saved(1);
        const Tensor& r = ctx.saved(2);
        return m < n ? wide_gradient(grads[0], grads[1], a, q, r)
                     : tall_gradient(grads[0], grads[1], q, r);
      });
    });
std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) {
  return op_linalg_qr(A, mode);
}

LS_OP(linalg_qr_out, TwoTensors(const Tensor&, std::string_view, const Tensor&, const Tensor&),
      "linalg_qr.out(Tensor A, str mode=\"reduced\", *, Tensor(a!) Q, Tensor(b!) R) -> (Tensor(a!) "
      "Q, Tensor(b!) R)")
    .doc("linalg_qr, written into Q and R.")
    .composite([](const Tensor& a, std::string_view mode, const Tensor& q, const Tensor& r) {
      return write_results(op_linalg_qr(a, mode), q, r);
    });

}  // namespace lockstep
