// Eigenvalues of symmetric matrices; declared in factorize.h.

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
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

Outputs linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v) {
  require_square("linalg_eigh", A);
  LS_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", Error,
           "[linalg_eigh] UPLO names the triangle to read: expected \"L\" or \"U\", got \"{}\".",
           UPLO);
  Outputs outputs;
  Dims values = to_dims(batch_sizes(A));
  values.push_back(A.size(-1));
  add_output(outputs, values, A.dtype());
  add_output(outputs, compute_v ? to_dims(A.sizes()) : Dims{0}, A.dtype());
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;

/// V (diag(gL) + (V^T gV) / E) V^T, where E[i][j] = L[j] - L[i] outside of the diagonal.
Tensor eigh_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors) {
  const Tensor vt = transposed(vectors);
  if (!grad_vectors.defined()) {
    return matmul(vectors * grad_values.unsqueeze(-2), vt);
  }
  const Tensor one = identity(values.size(-1), values.options());
  const Tensor gaps = values.unsqueeze(-2) - values.unsqueeze(-1) + one;
  Tensor inner = matmul(vt, grad_vectors) * (1 - one) / gaps;
  if (grad_values.defined()) inner = inner + diag_embed(grad_values);
  return matmul(matmul(vectors, inner), vt);
}

}  // namespace

LS_OP(linalg_eigh_parts, TwoTensors(const Tensor&, std::string_view, bool),
      "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor "
      "eigenvectors)")
    .doc("Eigenvalues of symmetric matrices in ascending order, and eigenvectors if asked for.")
    .structured(rules::linalg_eigh)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"output0", "output1"})
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      LS_CHECK(ctx.argument<bool>(2), Error,
               "[linalg_eigh] the derivative needs the eigenvectors: expected compute_v = true.");
      return ctx.gradients(
          [&] { return eigh_gradient(grads[0], grads[1], ctx.saved(0), ctx.saved(1)); });
    });

LS_OP(linalg_eigh, TwoTensors(const Tensor&, std::string_view),
      "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)")
    .doc("Eigenvalues and eigenvectors of symmetric matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::string_view triangle) {
      return op_linalg_eigh_parts(self, triangle, true);
    });
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return op_linalg_eigh(self, UPLO);
}

LS_OP(linalg_eigh_out, TwoTensors(const Tensor&, std::string_view, const Tensor&, const Tensor&),
      "linalg_eigh.eigvals(Tensor self, str UPLO=\"L\", *, Tensor(a!) eigvals, Tensor(b!) eigvecs) "
      "-> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)")
    .doc("linalg_eigh, written into eigvals and eigvecs.")
    .composite([](const Tensor& self, std::string_view triangle, const Tensor& values,
                  const Tensor& vectors) {
      return write_results(op_linalg_eigh(self, triangle), values, vectors);
    });

LS_OP(linalg_eigvalsh, Tensor(const Tensor&, std::string_view),
      "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor")
    .doc("Eigenvalues of symmetric matrices in ascending order.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::string_view triangle) {
      return std::get<0>(op_linalg_eigh_parts(self, triangle, may_need_gradient(self)));
    });
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return op_linalg_eigvalsh(self, UPLO);
}

LS_OP(linalg_eigvalsh_out, const Tensor&(const Tensor&, std::string_view, const Tensor&),
      "linalg_eigvalsh.out(Tensor self, str UPLO=\"L\", *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_eigvalsh, written into out.")
    .composite([](const Tensor& self, std::string_view triangle,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_eigvalsh(self, triangle));
    });

}  // namespace lockstep
