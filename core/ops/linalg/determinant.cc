// Determinants; declared in solve.h.

#include <limits>

#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/linalg/batching_matrices.h"
#include "core/ops/linalg/matrix_checks.h"
#include "core/ops/linalg/solve.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/rule_outputs.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

/// `numbers` results per matrix, its factors and its pivots.
Outputs numbers_and_factors(std::string_view op, const Tensor& a, int numbers) {
  require_square(op, a);
  Outputs outputs;
  Dims pivots = to_dims(batch_sizes(a));
  for (int i = 0; i < numbers; ++i) add_output(outputs, pivots, a.dtype());
  add_output(outputs, a.sizes(), a.dtype());
  pivots.push_back(a.size(-1));
  add_output(outputs, pivots, DType::kI32);
  outputs.specs[outputs.specs.size() - 1].exact_dtype = true;
  return outputs;
}

Outputs linalg_det(const Tensor& A) { return numbers_and_factors("linalg_det", A, 1); }
Outputs linalg_slogdet(const Tensor& A) { return numbers_and_factors("linalg_slogdet", A, 2); }
Outputs linalg_cofactors(const Tensor& A) {
  require_square("linalg_cofactors", A);
  return one(A.sizes(), A.dtype());
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// A number per matrix, to multiply matrices.
Tensor per_matrix(const Tensor& numbers) { return numbers.unsqueeze(-1).unsqueeze(-1); }

}  // namespace

LS_OP(linalg_cofactors, Tensor(const Tensor&), "_linalg_cofactors(Tensor A) -> Tensor")
    .doc("Matrices of cofactors, which are the derivatives of determinants.")
    .structured(rules::linalg_cofactors)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"A", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      // C = det(A) A^-T, so dC = <C, dA> A^-T - C dA^T A^-T: defined for invertible matrices.
      return ctx.gradients([&] {
        const Tensor& c = ctx.saved(1);
        const Tensor inverse = transposed(std::get<0>(linalg_inv_ex(ctx.saved(0))));
        const Tensor weight = per_matrix(sum(grad * c, {-2, -1}));
        return weight * inverse - matmul(matmul(c, transposed(grad)), inverse);
      });
    });
Tensor linalg_cofactors(const Tensor& A) { return op_linalg_cofactors(A); }

LS_OP(linalg_det_parts, ThreeTensors(const Tensor&),
      "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
    .doc("Determinants, and the LU factorization of each matrix.")
    .structured(rules::linalg_det)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"A"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return per_matrix(grad) * linalg_cofactors(ctx.saved(0)); });
    });

LS_OP(linalg_det, Tensor(const Tensor&), "linalg_det(Tensor A) -> Tensor")
    .doc("Determinants of matrices.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a) { return std::get<0>(op_linalg_det_parts(a)); });
Tensor linalg_det(const Tensor& A) { return op_linalg_det(A); }

LS_OP(linalg_det_out, const Tensor&(const Tensor&, const Tensor&),
      "linalg_det.out(Tensor A, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linalg_det, written into out.")
    .composite([](const Tensor& a, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_linalg_det(a));
    });

LS_OP(det, Tensor(const Tensor&), "det(Tensor self) -> Tensor")
    .doc("linalg_det under its older name.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self) { return op_linalg_det(self); });

LS_OP(linalg_slogdet_parts, FourTensors(const Tensor&),
      "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
    .doc("Signs and logarithms of determinants, and the LU factorization of each matrix.")
    .structured(rules::linalg_slogdet)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"A"})
    .differentiable_outputs(3)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      return ctx.gradients([&] {
        if (!grads[1].defined()) return zeros_like(ctx.saved(0));  // the sign is constant
        return per_matrix(grads[1]) * transposed(std::get<0>(linalg_inv_ex(ctx.saved(0))));
      });
    });

LS_OP(linalg_slogdet, TwoTensors(const Tensor&),
      "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)")
    .doc("Signs and logarithms of the absolute values of determinants.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a) {
      const auto [sign, logabsdet, lu, pivots] = op_linalg_slogdet_parts(a);
      return TwoTensors(sign, logabsdet);
    });
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) { return op_linalg_slogdet(A); }

LS_OP(linalg_slogdet_out, TwoTensors(const Tensor&, const Tensor&, const Tensor&),
      "linalg_slogdet.out(Tensor A, *, Tensor(a!) sign, Tensor(b!) logabsdet) -> (Tensor(a!) sign, "
      "Tensor(b!) logabsdet)")
    .doc("linalg_slogdet, written into sign and logabsdet.")
    .composite([](const Tensor& a, const Tensor& sign, const Tensor& logabsdet) {
      return write_results(op_linalg_slogdet(a), sign, logabsdet);
    });

LS_OP(logdet, Tensor(const Tensor&), "logdet(Tensor self) -> Tensor")
    .doc("Logarithms of determinants, NaN for negative ones.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self) {
      rules::require_square("logdet", self);
      const auto [sign, logabsdet] = op_linalg_slogdet(self);
      return masked_fill(logabsdet, lt(sign, 0), std::numeric_limits<double>::quiet_NaN());
    });
Tensor logdet(const Tensor& self) { return op_logdet(self); }

}  // namespace lockstep
