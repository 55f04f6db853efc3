// Systems of linear equations and inverses; declared in solve.h.

#include "core/ops/linalg/solve.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/linalg/batching_matrices.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

/// Sizes of the solution of a system: those of b in the batch of both.
Dims solution_sizes(std::string_view op, const Tensor& a, const Tensor& b) {
  return matrix_sizes(broadcast(op, batch_sizes(a), batch_sizes(b)), b.size(-2), b.size(-1));
}

Outputs linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool) {
  require_system("linalg_solve", A, B, left);
  Outputs outputs;
  Dims pivots = to_dims(batch_sizes(A));
  add_output(outputs, solution_sizes("linalg_solve", A, B), A.dtype());
  add_output(outputs, A.sizes(), A.dtype());
  add_output(outputs, pivots, DType::kI32);
  outputs.specs[2].sizes.push_back(A.size(-1));
  add_output(outputs, pivots, DType::kI32);
  outputs.specs[2].exact_dtype = outputs.specs[3].exact_dtype = true;
  outputs.workspace_bytes = static_cast<size_t>(A.numel()) * sizeof(double);
  return outputs;
}

Outputs linalg_inv_ex(const Tensor& A, bool) {
  require_square("linalg_inv", A);
  Outputs outputs;
  add_output(outputs, A.sizes(), A.dtype());
  add_output(outputs, batch_sizes(A), DType::kI32);
  outputs.specs[1].exact_dtype = true;
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;
using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// Whether B is a batch of vectors: ATen decides by its shape.
bool are_vectors(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  return a.dim() - 1 == b.dim() && same(b.sizes(), a.sizes().first(a.sizes().size() - 1));
}

}  // namespace

LS_OP(linalg_solve_parts, FourTensors(const Tensor&, const Tensor&, bool, bool),
      "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
      "result, Tensor LU, Tensor pivots, Tensor info)")
    .doc("The solution of A X = B or X A = B for matrices B, and the LU factorization of A.")
    .structured(rules::linalg_solve_ex)
    .batching(batching::systems)
    .autocast(Autocast::kF32)
    .saves({"A", "output0 for A"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const bool left = ctx.argument<bool>(2);
      const Tensor of_b = std::get<0>(linalg_solve_ex(transposed(ctx.saved(0)), grad, left, false));
      return ctx.gradients(
          [&] {
            const Tensor xt = transposed(ctx.saved(1));
            return ctx.unbroadcast(-(left ? matmul(of_b, xt) : matmul(xt, of_b)), 0);
          },
          [&] { return ctx.unbroadcast(of_b, 1); });
    });

LS_OP(linalg_solve_ex, TwoTensors(const Tensor&, const Tensor&, bool, bool),
      "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
      "result, Tensor info)")
    .doc("The solution of A X = B or X A = B, and whether each A is invertible.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, const Tensor& b, bool left, bool check_errors) {
      rules::require_square("linalg_solve", a);
      LS_CHECK(b.dim() >= 1, ShapeError,
               "[linalg_solve] expected a vector or matrices B, got shape {}.", b.shape());
      if (!are_vectors(a, b)) {
        const auto [x, lu, pivots, info] = op_linalg_solve_parts(a, b, left, check_errors);
        return TwoTensors(x, info);
      }
      LS_CHECK(left, ShapeError,
               "[linalg_solve] vectors stand on the right only: expected left = true for shapes "
               "{} and {}.",
               a.shape(), b.shape());
      const auto [x, lu, pivots, info] =
          op_linalg_solve_parts(a, b.unsqueeze(-1), left, check_errors);
      return TwoTensors(x.squeeze(-1), info);
    });
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  return op_linalg_solve_ex(A, B, left, check_errors);
}

LS_OP(linalg_solve_ex_out,
      TwoTensors(const Tensor&, const Tensor&, bool, bool, const Tensor&, const Tensor&),
      "linalg_solve_ex.out(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, "
      "Tensor(a!) result, Tensor(b!) info) -> (Tensor(a!) result, Tensor(b!) info)")
    .doc("linalg_solve_ex, written into result and info.")
    .composite([](const Tensor& a, const Tensor& b, bool left, bool check_errors,
                  const Tensor& result, const Tensor& info) {
      return write_results(op_linalg_solve_ex(a, b, left, check_errors), result, info);
    });

LS_OP(linalg_solve, Tensor(const Tensor&, const Tensor&, bool),
      "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
    .doc("The solution of A X = B or X A = B.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, const Tensor& b, bool left) {
      return std::get<0>(op_linalg_solve_ex(a, b, left, true));
    });
Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  return op_linalg_solve(A, B, left);
}

LS_OP(linalg_solve_out, const Tensor&(const Tensor&, const Tensor&, bool, const Tensor&),
      "linalg_solve.out(Tensor A, Tensor B, *, bool left=True, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_solve, written into out.")
    .composite([](const Tensor& a, const Tensor& b, bool left, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_solve(a, b, left));
    });

LS_OP(linalg_inv_ex, TwoTensors(const Tensor&, bool),
      "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
    .doc("Inverses of matrices, and whether each is invertible.")
    .structured(rules::linalg_inv_ex)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor inverse = transposed(ctx.saved(0));
        return -matmul(inverse, matmul(grad, inverse));
      });
    });
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors) {
  return op_linalg_inv_ex(A, check_errors);
}

LS_OP(linalg_inv_ex_out, TwoTensors(const Tensor&, bool, const Tensor&, const Tensor&),
      "linalg_inv_ex.inverse(Tensor A, *, bool check_errors=False, Tensor(a!) inverse, Tensor(b!) "
      "info) -> (Tensor(a!) inverse, Tensor(b!) info)")
    .doc("linalg_inv_ex, written into inverse and info.")
    .composite([](const Tensor& a, bool check_errors, const Tensor& inverse, const Tensor& info) {
      return write_results(op_linalg_inv_ex(a, check_errors), inverse, info);
    });

LS_OP(linalg_inv, Tensor(const Tensor&), "linalg_inv(Tensor A) -> Tensor")
    .doc("Inverses of matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a) { return std::get<0>(op_linalg_inv_ex(a, true)); });
Tensor linalg_inv(const Tensor& A) { return op_linalg_inv(A); }

LS_OP(linalg_inv_out, const Tensor&(const Tensor&, const Tensor&),
      "linalg_inv.out(Tensor A, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_inv, written into out.")
    .composite([](const Tensor& a, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_inv(a));
    });

LS_OP(inverse, Tensor(const Tensor&), "inverse(Tensor self) -> Tensor")
    .doc("linalg_inv under its older name.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self) { return op_linalg_inv(self); });

}  // namespace lockstep
