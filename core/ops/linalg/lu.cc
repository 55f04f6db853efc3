// LU factorizations; declared in factorize.h.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
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
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {
namespace {

void require_pivot(bool pivot) {
  LS_CHECK(pivot, Error,
           "[linalg_lu] a factorization without row exchanges is not available: expected pivot = "
           "true, got false.");
}

Outputs linalg_lu_factor_ex(const Tensor& A, bool pivot, bool) {
  require_matrices("linalg_lu_factor", A);
  require_pivot(pivot);
  Outputs outputs;
  Dims pivots = to_dims(batch_sizes(A));
  add_output(outputs, A.sizes(), A.dtype());
  add_output(outputs, pivots, DType::kI32);
  outputs.specs[1].sizes.push_back(std::min(A.size(-2), A.size(-1)));
  add_output(outputs, pivots, DType::kI32);
  outputs.specs[1].exact_dtype = outputs.specs[2].exact_dtype = true;
  return outputs;
}

Outputs lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                  bool unpack_pivots) {
  require_matrices("lu_unpack", LU_data);
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n);
  LS_CHECK(LU_pivots.dtype() == DType::kI32, DTypeError,
           "[lu_unpack] LU_pivots must be int32, got {}.", to_string(LU_pivots));
  Dims pivots = to_dims(batch_sizes(LU_data));
  pivots.push_back(k);
  LS_CHECK(same(LU_pivots.sizes(), pivots), ShapeError,
           "[lu_unpack] expected LU_pivots of shape {} for LU_data of shape {}, got {}.",
           to_string(pivots), LU_data.shape(), LU_pivots.shape());
  const IntList batch = batch_sizes(LU_data);
  const Dims none{0};
  Outputs outputs;
  add_output(outputs, unpack_pivots ? matrix_sizes(batch, m, m) : none, LU_data.dtype());
  add_output(outputs, unpack_data ? matrix_sizes(batch, m, k) : none, LU_data.dtype());
  add_output(outputs, unpack_data ? matrix_sizes(batch, k, n) : none, LU_data.dtype());
  return outputs;
}

}  // namespace
}  // namespace rules

namespace {

using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

Tensor rows(const Tensor& matrices, int64_t begin, int64_t end) {
  return narrow(matrices, -2, begin, end - begin);
}
Tensor columns(const Tensor& matrices, int64_t begin, int64_t end) {
  return narrow(matrices, -1, begin, end - begin);
}

/// The gradient of A = P L U, given those of the strictly lower part of L and the upper part of U.
/// With k = min(m, n), the leading k x k block is a square factorization, A1 = L1 U1. What stands
/// outside is L2 = A2 U1^-1 (tall) or U2 = L1^-1 A2 (wide), a function of it and of A2.
Tensor lu_gradient(const Tensor& grad_l, const Tensor& grad_u, const Tensor& p, const Tensor& l,
                   const Tensor& u) {
  const int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  const Tensor l1 = rows(l, 0, k), u1 = columns(u, 0, k);
  const Tensor l1t = transposed(l1), u1t = transposed(u1);
  Tensor lower = matmul(l1t, rows(grad_l, 0, k));
  Tensor upper = matmul(columns(grad_u, 0, k), u1t);
  Tensor outside;
  if (n > k) {
    const Tensor grad_u2 = columns(grad_u, k, n);
    lower = lower - matmul(grad_u2, transposed(columns(u, k, n)));
    outside = linalg_solve_triangular(l1t, grad_u2, true, true, true);
  }
  if (m > k) {
    const Tensor grad_l2 = rows(grad_l, k, m);
    upper = upper - matmul(transposed(rows(l, k, m)), grad_l2);
    outside = linalg_solve_triangular(u1t, grad_l2, false, false);
  }
  const Tensor inner = tril(lower, -1) + triu(upper);
  const Tensor half = linalg_solve_triangular(u1t, inner, false, false);
  Tensor grad = linalg_solve_triangular(l1t, half, true, true, true);
  if (outside.defined()) grad = cat({grad, outside}, n > k ? -1 : -2);
  return matmul(p, grad);
}

/// The gradient of L and U in one matrix: the parts of each that are not constant.
Tensor packed(const Tensor& grad_l, const Tensor& grad_u, IntList sizes, TensorOptions options) {
  const IntList batch = sizes.first(sizes.size() - 2);
  const int64_t m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1], k = std::min(m, n);
  Tensor result = zeros(sizes, options);
  if (grad_l.defined()) {
    const Tensor rest = zeros(rules::matrix_sizes(batch, m, n - k), options);
    result = result + cat({tril(grad_l, -1), rest}, -1);
  }
  if (grad_u.defined()) {
    const Tensor rest = zeros(rules::matrix_sizes(batch, m - k, n), options);
    result = result + cat({triu(grad_u), rest}, -2);
  }
  return result;
}

}  // namespace

LS_OP(lu_unpack, ThreeTensors(const Tensor&, const Tensor&, bool, bool),
      "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
      "-> (Tensor P, Tensor L, Tensor U)")
    .doc("The permutation and the factors of an LU factorization, each as a matrix.")
    .structured(rules::lu_unpack)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .differentiable_outputs(6)
    .derivative_of_many([](VjpContext& ctx, std::span<const Tensor> grads) {
      const InputMeta& data = ctx.input(0);
      Gradients gradients(ctx.input_count());
      if (ctx.needs(0)) {
        const TensorOptions options(data.dtype, data.device);
        const bool unpacks_data = ctx.argument<bool>(2);  // else L and U have no elements
        gradients[0] = unpacks_data ? packed(grads[1], grads[2], data.sizes, options)
                                    : zeros(data.sizes, options);
      }
      return gradients;
    });
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                             bool unpack_data, bool unpack_pivots) {
  return op_lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots);
}

LS_OP(lu_unpack_out,
      ThreeTensors(const Tensor&, const Tensor&, bool, bool, const Tensor&, const Tensor&,
                   const Tensor&),
      "lu_unpack.out(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
      "unpack_pivots=True, *, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, "
      "Tensor(b!) L, Tensor(c!) U)")
    .doc("lu_unpack, written into P, L and U.")
    .composite([](const Tensor& data, const Tensor& pivots, bool unpack_data, bool unpack_pivots,
                  const Tensor& p, const Tensor& l, const Tensor& u) {
      return write_results(op_lu_unpack(data, pivots, unpack_data, unpack_pivots), p, l, u);
    });

LS_OP(linalg_lu_factor_ex, ThreeTensors(const Tensor&, bool, bool),
      "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
      "Tensor pivots, Tensor info)")
    .doc("LU factorizations with row exchanges, and whether each U is invertible.")
    .structured(rules::linalg_lu_factor_ex)
    .batching(batching::matrices)
    .autocast(Autocast::kF32)
    .saves({"output0", "output1"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const auto [p, l, u] = lu_unpack(ctx.saved(0), ctx.saved(1));
        return lu_gradient(tril(columns(grad, 0, l.size(-1)), -1), triu(rows(grad, 0, u.size(-2))),
                           p, l, u);
      });
    });
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, bool pivot,
                                                       bool check_errors) {
  return op_linalg_lu_factor_ex(A, pivot, check_errors);
}

LS_OP(linalg_lu_factor_ex_out,
      ThreeTensors(const Tensor&, bool, bool, const Tensor&, const Tensor&, const Tensor&),
      "linalg_lu_factor_ex.out(Tensor A, *, bool pivot=True, bool check_errors=False, Tensor(a!) "
      "LU, Tensor(b!) pivots, Tensor(c!) info) -> (Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) "
      "info)")
    .doc("linalg_lu_factor_ex, written into LU, pivots and info.")
    .composite([](const Tensor& a, bool pivot, bool check_errors, const Tensor& lu,
                  const Tensor& pivots, const Tensor& info) {
      return write_results(op_linalg_lu_factor_ex(a, pivot, check_errors), lu, pivots, info);
    });

LS_OP(linalg_lu_factor, TwoTensors(const Tensor&, bool),
      "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
    .doc("LU factorizations with row exchanges.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, bool pivot) {
      const auto [lu, pivots, info] = op_linalg_lu_factor_ex(a, pivot, true);
      return TwoTensors(lu, pivots);
    });
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  return op_linalg_lu_factor(A, pivot);
}

LS_OP(linalg_lu, ThreeTensors(const Tensor&, bool),
      "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
    .doc("The matrices of an LU factorization with row exchanges.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& a, bool pivot) {
      const auto [lu, pivots, info] = op_linalg_lu_factor_ex(a, pivot, false);
      return op_lu_unpack(lu, pivots, true, true);
    });
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  return op_linalg_lu(A, pivot);
}

LS_OP(linalg_lu_out, ThreeTensors(const Tensor&, bool, const Tensor&, const Tensor&, const Tensor&),
      "linalg_lu.out(Tensor A, *, bool pivot=True, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> "
      "(Tensor(a!) P, Tensor(b!) L, Tensor(c!) U)")
    .doc("linalg_lu, written into P, L and U.")
    .composite([](const Tensor& a, bool pivot, const Tensor& p, const Tensor& l, const Tensor& u) {
      return write_results(op_linalg_lu(a, pivot), p, l, u);
    });

}  // namespace lockstep
