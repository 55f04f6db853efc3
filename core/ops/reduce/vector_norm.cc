// Norms of vectors and logsumexp; declared in reduce.h.

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduce_rules.h"
#include "core/ops/reduce/reduced_dims.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace rules {
namespace {

Outputs logcumsumexp(const Tensor& self, int64_t dim) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[logcumsumexp] expected a floating dtype, got {}. Cast it with to(dtype).",
           to_string(self));
  wrap_dim("logcumsumexp", dim, self.dim());
  return one(to_dims(self.sizes()), self.dtype());
}
Outputs logsumexp(const Tensor& self, IntList dims, bool keepdim) {
  const DType dtype = is_floating(self.dtype()) ? self.dtype() : DType::kF32;
  return one(reduced_sizes("logsumexp", self, dims, keepdim), dtype);
}
Outputs vector_norm(const Tensor& self, Scalar ord, std::optional<IntList> dims_or_all,
                    bool keepdim, std::optional<DType> dtype) {
  constexpr std::string_view kName = "linalg_vector_norm";
  const IntList dims = dims_or_all.value_or(IntList());
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", kName,
           to_string(self));
  const DType result = dtype.value_or(self.dtype());
  LS_CHECK(is_floating(result) && promote(self.dtype(), result) == result, DTypeError,
           "[{}] dtype must be floating and hold {} without loss, got {}.", kName,
           to_string(self.dtype()), to_string(result));
  if (ord.to_double() < 0 || ord.to_double() == INFINITY) check_not_empty(kName, self, dims);
  return one(reduced_sizes(kName, self, dims, keepdim), result);
}

}  // namespace
}  // namespace rules

namespace {

using MaybeDims = std::optional<IntList>;

/// The gradient of a p-norm of `self`; `norm` and `grad` broadcast with it. It is 0 where the norm
/// is not differentiable (an element or a norm of 0) and for p = 0.
Tensor norm_gradient(const Tensor& self, const Tensor& norm, const Tensor& grad, double p,
                     IntList dims) {
  if (p == 0) return zeros_like(self);
  if (p == 1) return grad * sign(self);
  if (std::isinf(p)) {  // the elements chosen share the gradient
    const Tensor size = abs(self);
    const Tensor chosen = where(isnan(size), isnan(size), eq(size, norm)).to(grad.dtype());
    return (sign(self) * chosen) * (grad / sum(chosen, dims, true));
  }
  const Tensor safe_norm = masked_fill(norm, eq(norm, 0), 1);
  if (p == 2) return grad * (self / safe_norm);
  if (p < 1) {
    const Tensor size = masked_fill(abs(self), eq(self, 0), 1);
    return (sign(self) * pow(size, p - 1)) * (grad * pow(norm, 1 - p));
  }
  return (sign(self) * pow(abs(self), p - 1)) * (grad / pow(safe_norm, p - 1));
}

void check_floating(const Tensor& self) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[norm] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
}

/// Logarithm of a gradient of 0: exp of it is 0, and unlike -inf it cannot make a difference NaN.
double far_below(DType dtype) { return dtype == DType::kF16 ? -6e4 : -1e38; }

}  // namespace

LS_OP(logsumexp, Tensor(const Tensor&, IntList, bool),
      "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    .doc("log(sum(exp(self))) over dimensions, without overflow.")
    .structured(rules::logsumexp)
    .batching(batching::reduction)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const IntList dims = ctx.argument<IntList>(1);
        const bool keepdim = ctx.argument<bool>(2);
        const Tensor& self = ctx.saved(0);
        const Tensor result = with_reduced_dims(ctx.saved(1), self.sizes(), dims, keepdim);
        return with_reduced_dims(grad, self.sizes(), dims, keepdim) * exp(self - result);
      });
    });
Tensor logsumexp(const Tensor& self, IntList dims, bool keepdim) {
  return op_logsumexp(self, dims, keepdim);
}

LS_OP(logcumsumexp, Tensor(const Tensor&, int64_t), "logcumsumexp(Tensor self, int dim) -> Tensor")
    .doc("The running log(sum(exp(self))) along a dimension, without overflow.")
    .structured(rules::logcumsumexp)
    .batching(batching::along_dims)
    .out()
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        // The sum over j >= i of grad[j] exp(self[i] - result[j]), computed with logarithms and
        // therefore separately for positive and negative gradients.
        const int64_t dim = ctx.argument<int64_t>(1);
        const Tensor& self = ctx.saved(0);
        const Tensor& result = ctx.saved(1);
        const auto share = [&](const Tensor& part) {
          const Tensor none = le(part, 0);
          const Tensor logs =
              masked_fill(log(masked_fill(part, none, 1)), none, far_below(part.dtype()));
          return exp(flip(logcumsumexp(flip(logs - result, {dim}), dim), {dim}) + self);
        };
        return share(grad) - share(neg(grad));
      });
    });
Tensor logcumsumexp(const Tensor& self, int64_t dim) { return op_logcumsumexp(self, dim); }

LS_OP(vector_norm, Tensor(const Tensor&, Scalar, MaybeDims, bool, std::optional<DType>),
      "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
      "ScalarType? dtype=None) -> Tensor")
    .doc("(sum |x|^ord)^(1 / ord) over dimensions.")
    .structured(rules::vector_norm)
    .batching(batching::reduction)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const IntList dims = ctx.argument<MaybeDims>(2).value_or(IntList());
        const bool keepdim = ctx.argument<bool>(3);
        const Tensor& self = ctx.saved(0);
        const Tensor wide = self.dtype() == grad.dtype() ? self : self.to(grad.dtype());
        const Tensor result =
            norm_gradient(wide, with_reduced_dims(ctx.saved(1), self.sizes(), dims, keepdim),
                          with_reduced_dims(grad, self.sizes(), dims, keepdim),
                          ctx.argument<Scalar>(1).to_double(), dims);
        return result.dtype() == self.dtype() ? result : result.to(self.dtype());
      });
    });
Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, IntList dims, bool keepdim,
                          std::optional<DType> dtype) {
  return op_vector_norm(self, ord, dims, keepdim, dtype);
}

LS_OP(norm_dim, Tensor(const Tensor&, std::optional<Scalar>, IntList, bool),
      "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
    .doc("linalg_vector_norm over dimensions; p defaults to 2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::optional<Scalar> p, IntList dims, bool keepdim) {
      check_floating(self);
      return linalg_vector_norm(self, p.value_or(2), dims, keepdim);
    });

LS_OP(norm_dim_out,
      const Tensor&(const Tensor&, std::optional<Scalar>, IntList, bool, const Tensor&),
      "norm.out(Tensor self, Scalar? p, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("norm, written into out.")
    .composite([](const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_norm_dim(self, p, dim, keepdim));
    });

LS_OP(norm_dim_dtype, Tensor(const Tensor&, std::optional<Scalar>, IntList, bool, DType),
      "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
      "dtype) -> Tensor")
    .doc("linalg_vector_norm over dimensions, computed in a dtype; p defaults to 2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::optional<Scalar> p, IntList dims, bool keepdim,
                  DType dtype) {
      return linalg_vector_norm(self.dtype() == dtype ? self : self.to(dtype), p.value_or(2), dims,
                                keepdim);
    });

LS_OP(norm_dim_dtype_out,
      const Tensor&(const Tensor&, std::optional<Scalar>, IntList, bool, DType, const Tensor&),
      "norm.dtype_out(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("norm, written into out.")
    .composite([](const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim,
                  DType dtype, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_norm_dim_dtype(self, p, dim, keepdim, dtype));
    });

LS_OP(norm_number, Tensor(const Tensor&, Scalar), "norm.Scalar(Tensor self, Scalar p=2) -> Tensor")
    .doc("linalg_vector_norm of all elements.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, Scalar p) {
      check_floating(self);
      return linalg_vector_norm(self, p);
    });

LS_OP(norm_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "norm.Scalar_out(Tensor self, Scalar p=2, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("norm, written into out.")
    .composite([](const Tensor& self, Scalar p, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_norm_number(self, p));
    });

LS_OP(norm_dtype, Tensor(const Tensor&, std::optional<Scalar>, DType),
      "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
    .doc("linalg_vector_norm of all elements, computed in a dtype; p defaults to 2.")
    .autocast(Autocast::kF32)
    .composite([](const Tensor& self, std::optional<Scalar> p, DType dtype) {
      return op_norm_dim_dtype(self, p, {}, false, dtype);
    });

LS_OP(norm_dtype_out, const Tensor&(const Tensor&, std::optional<Scalar>, DType, const Tensor&),
      "norm.ScalarOpt_dtype_out(Tensor self, Scalar? p, *, ScalarType dtype, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("norm, written into out.")
    .composite([](const Tensor& self, std::optional<Scalar> p, DType dtype,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_norm_dtype(self, p, dtype));
    });

}  // namespace lockstep
