// Cholesky's factorization and its uses; declared in factorize.h and solve.h.

#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/factorize.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/rule_outputs.h"

namespace lockstep {

namespace rules {
namespace {

Outputs linalg_cholesky_ex(const Tensor& self, bool, bool) {
  require_square("linalg_cholesky", self);
  Outputs outputs;
  add_output(outputs, self.sizes(), self.dtype());
  add_output(outputs, batch_sizes(self), DType::kI32);
  outputs.specs[1].exact_dtype = true;
  return outputs;
}

Outputs cholesky_solve(const Tensor& self, const Tensor& input2, bool) {
  require_system("cholesky_solve", input2, self, true);
  const Dims batch = broadcast("cholesky_solve", batch_sizes(input2), batch_sizes(self));
  return one(matrix_sizes(batch, self.size(-2), self.size(-1)), self.dtype());
}

Outputs cholesky_inverse(const Tensor& self, bool) {
  require_square("cholesky_inverse", self);
  return one(self.sizes(), self.dtype());
}

}  // namespace
}  // namespace rules

namespace {

/// The gradient of A = L L^T: L^-T sym(L^T gL) L^-1, where sym mirrors the lower triangle and
/// halves the result (Murray 2016, Differentiation of the Cholesky decomposition).
Tensor cholesky_gradient(const Tensor& grad, const Tensor& lower) {
  const Tensor product = matmul(transposed(lower), grad);
  const Tensor symmetric = (tril(product) + transposed(tril(product, -1))) * 0.5;
  const Tensor half = linalg_solve_triangular(transposed(lower), symmetric, true);
  return linalg_solve_triangular(lower, half, false, false);
}

using TwoTensors = std::tuple<Tensor, Tensor>;

}  // namespace

LS_OP(linalg_cholesky_ex, TwoTensors(const Tensor&, bool, bool),
      "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
      "Tensor info)")
    .doc("Cholesky factors of symmetric matrices, and whether each is positive definite.")
    .structured(rules::linalg_cholesky_ex)
    .batching(batching::elementwise)
    .autocast(Autocast::kF32)
    .saves({"output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& factor = ctx.saved(0);
        return ctx.argument<bool>(1) ? cholesky_gradient(transposed(grad), transposed(factor))
                                     : cholesky_gradient(grad, factor);
      });
    });
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  return op_linalg_cholesky_ex(self, upper, check_errors);
}

LS_OP(linalg_cholesky_ex_out, TwoTensors(const Tensor&, bool, bool, const Tensor&, const Tensor&),
      "linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) "
      "L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)")
    .doc("linalg_cholesky_ex, written into L and info.")
    .composite([](const Tensor& self, bool upper, bool check_errors, const Tensor& factor,
                  const Tensor& info) {
      return write_results(op_linalg_cholesky_ex(self, upper, check_errors), factor, info);
    });

LS_OP(linalg_cholesky, Tensor(const Tensor&, bool),
      "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor")
    .doc("Cholesky factors of symmetric positive definite matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, bool upper) {
      return std::get<0>(op_linalg_cholesky_ex(self, upper, true));
    });
Tensor linalg_cholesky(const Tensor& self, bool upper) { return op_linalg_cholesky(self, upper); }

LS_OP(linalg_cholesky_out, const Tensor&(const Tensor&, bool, const Tensor&),
      "linalg_cholesky.out(Tensor self, *, bool upper=False, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_cholesky, written into out.")
    .composite([](const Tensor& self, bool upper, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_cholesky(self, upper));
    });

// The gradients of the next two take the whole factor as read, as ATen's do: they are those of A =
// L L^T, and not 0 in the triangle that is not read.

LS_OP(cholesky_solve, Tensor(const Tensor&, const Tensor&, bool),
      "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
    .doc("Solves A X = self, given the Cholesky factor of A.")
    .structured(rules::cholesky_solve)
    .batching(batching::elementwise)
    .out()
    .autocast(Autocast::kF32)
    .saves({"input2", "output0 for input2"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& factor = ctx.saved(0);
      const bool upper = ctx.argument<bool>(2);
      const Tensor of_self = cholesky_solve(grad, factor, upper);
      return ctx.gradients([&] { return ctx.unbroadcast(of_self, 0); },
                           [&] {
                             const Tensor of_inverse = matmul(of_self, transposed(ctx.saved(1)));
                             const Tensor both = of_inverse + transposed(of_inverse);
                             return ctx.unbroadcast(
                                 -(upper ? matmul(factor, both) : matmul(both, factor)), 1);
                           });
    });
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  return op_cholesky_solve(self, input2, upper);
}

LS_OP(cholesky_inverse, Tensor(const Tensor&, bool),
      "cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
    .doc("The inverse of A, given its Cholesky factor.")
    .structured(rules::cholesky_inverse)
    .batching(batching::elementwise)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& factor = ctx.saved(0);
        const Tensor& inverse = ctx.saved(1);
        const Tensor both = matmul(inverse, matmul(grad + transposed(grad), inverse));
        return -(ctx.argument<bool>(1) ? matmul(factor, both) : matmul(both, factor));
      });
    });
Tensor cholesky_inverse(const Tensor& self, bool upper) { return op_cholesky_inverse(self, upper); }

}  // namespace lockstep
