// Triangular systems; declared in solve.h.

#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

Outputs linalg_solve_triangular(const Tensor& self, const Tensor& B, bool, bool left, bool) {
  require_system("linalg_solve_triangular", self, B, left);
  const Dims batch = broadcast("linalg_solve_triangular", batch_sizes(self), batch_sizes(B));
  return one(matrix_sizes(batch, B.size(-2), B.size(-1)), B.dtype());
}

}  // namespace
}  // namespace rules

LS_OP(linalg_solve_triangular, Tensor(const Tensor&, const Tensor&, bool, bool, bool),
      "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
      "unitriangular=False) -> Tensor")
    .doc("The solution of A X = B or X A = B for triangular matrices A.")
    .structured(rules::linalg_solve_triangular)
    .batching(batching::elementwise)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0 for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const bool upper = ctx.argument<bool>(2), left = ctx.argument<bool>(3);
      const bool unit = ctx.argument<bool>(4);
      const Tensor of_b =
          linalg_solve_triangular(transposed(ctx.saved(0)), grad, !upper, left, unit);
      return ctx.gradients(
          [&] {
            const Tensor xt = transposed(ctx.saved(1));
            const Tensor whole = -(left ? matmul(of_b, xt) : matmul(xt, of_b));
            const int64_t edge = unit ? 1 : 0;
            return ctx.unbroadcast(upper ? triu(whole, edge) : tril(whole, -edge), 0);
          },
          [&] { return ctx.unbroadcast(of_b, 1); });
    });
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left,
                               bool unitriangular) {
  return op_linalg_solve_triangular(self, B, upper, left, unitriangular);
}

using TwoTensors = std::tuple<Tensor, Tensor>;
LS_OP(triangular_solve, TwoTensors(const Tensor&, const Tensor&, bool, bool, bool),
      "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
      "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)")
    .doc("The solution of A X = self or A^T X = self for triangular matrices A, and A.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, const Tensor& a, bool upper, bool transpose,
                  bool unitriangular) {
      rules::require_system("triangular_solve", a, self, true);
      const Dims batch =
          broadcast("triangular_solve", rules::batch_sizes(a), rules::batch_sizes(self));
      const Tensor x = linalg_solve_triangular(transpose ? transposed(a) : a, self,
                                               upper != transpose, true, unitriangular);
      const Tensor coefficient =
          a.expand(rules::matrix_sizes(batch, a.size(-2), a.size(-1))).clone();
      return TwoTensors(x, coefficient);
    });
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper,
                                            bool transpose, bool unitriangular) {
  return op_triangular_solve(self, A, upper, transpose, unitriangular);
}

LS_OP(triangular_solve_out,
      TwoTensors(const Tensor&, const Tensor&, bool, bool, bool, const Tensor&, const Tensor&),
      "triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
      "unitriangular=False, *, Tensor(a!) X, Tensor(b!) M) -> (Tensor(a!) solution, Tensor(b!) "
      "cloned_coefficient)")
    .doc("triangular_solve, written into X and M.")
    .composite([](const Tensor& self, const Tensor& a, bool upper, bool transpose,
                  bool unitriangular, const Tensor& x, const Tensor& m) {
      return write_results(op_triangular_solve(self, a, upper, transpose, unitriangular), x, m);
    });

}  // namespace lockstep
