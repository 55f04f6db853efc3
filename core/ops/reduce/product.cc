// Products along dimensions; declared in reduce.h.

#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduce_rules.h"
#include "core/ops/reduce/reduced_dims.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace rules {
namespace {

Outputs cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running("cumprod", self, dim, dtype);
}
Outputs linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim) {
  wrap_dim("_linear_recurrence", dim, input.dim());
  LS_CHECK(same(decay.sizes(), input.sizes()) && decay.dtype() == input.dtype() &&
               is_floating(input.dtype()),
           ShapeError,
           "[_linear_recurrence] expected decay and input of one shape and floating dtype, got {} "
           "and {}.",
           to_string(decay), to_string(input));
  return one(to_dims(input.sizes()), input.dtype());
}
Outputs prod(const Tensor& self, std::optional<DType> dtype) {
  return total_of("prod", self, {}, false, dtype);
}
Outputs prod_dim(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return total_of("prod", self, {dim}, keepdim, dtype);
}

}  // namespace
}  // namespace rules

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor reversed(const Tensor& tensor, int64_t dim) { return flip(tensor, {dim}); }

/// Shifts the elements by one along `dim`: tensor[i - 1], and `first` for i = 0.
Tensor delayed(const Tensor& tensor, int64_t dim, const Scalar& first) {
  Dims sizes = to_dims(tensor.sizes());
  int64_t& size = sizes[static_cast<size_t>(wrap_dim("delayed", dim, tensor.dim()))];
  if (size == 0) return tensor;
  const int64_t kept = size - 1;
  size = 1;
  return cat({full(sizes, first, tensor.options()), narrow(tensor, dim, 0, kept)}, dim);
}

/// The gradient h of each state of a recurrence: h[i] = grad[i] + decay[i + 1] h[i + 1].
Tensor states_gradient(const Tensor& decay, const Tensor& grad, int64_t dim) {
  const Tensor backwards = delayed(reversed(decay, dim), dim, 0);
  return reversed(linear_recurrence(backwards, reversed(grad, dim), dim), dim);
}

/// The gradient of a product along `dim`, where `grad` has size 1: the product of all other
/// elements, computed without division so that zeros are exact. If no element is 0 the result is
/// NaN where division would give NaN: if there is a NaN, and for an infinity.
Tensor others_product(const Tensor& grad, const Tensor& self, int64_t dim) {
  if (self.dim() == 0) return grad;
  const Tensor before = cumprod(delayed(self, dim, 1), dim);
  const Tensor after = reversed(cumprod(delayed(reversed(self, dim), dim, 1), dim), dim);
  const Tensor lost = logical_or(isnan(prod(self, dim, true)), isinf(self));
  return masked_fill(grad * (before * after), logical_and(lost, all(self)), kNan);
}

}  // namespace

LS_OP(prod, Tensor(const Tensor&, std::optional<DType>),
      "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .doc("The product of all elements; 1 for none.")
    .structured(rules::prod)
    .batching(batching::reduce_all)
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor flat = as_dtype(ctx.saved(0), grad.dtype()).reshape({-1});
        return as_dtype(others_product(grad, flat, 0).reshape(ctx.sizes(0)), ctx.input(0).dtype);
      });
    });
Tensor prod(const Tensor& self) { return op_prod(self, std::nullopt); }

LS_OP(prod_dim, Tensor(const Tensor&, int64_t, bool, std::optional<DType>),
      "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .doc("The product along a dimension; 1 for no elements.")
    .structured(rules::prod_dim)
    .batching(batching::reduction)
    .out("int_out")
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const int64_t dim = ctx.argument<int64_t>(1);
        const Tensor each = with_reduced_dims(grad, ctx.sizes(0), {dim}, ctx.argument<bool>(2));
        return as_dtype(others_product(each, as_dtype(ctx.saved(0), grad.dtype()), dim),
                        ctx.input(0).dtype);
      });
    });
Tensor prod(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return op_prod_dim(self, dim, keepdim, dtype);
}

LS_OP(cumprod, Tensor(const Tensor&, int64_t, std::optional<DType>),
      "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .doc("The running product along a dimension.")
    .structured(rules::cumprod)
    .batching(batching::along_dims)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self", "output0"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        // The result is the recurrence y[i] = self[i] y[i - 1].
        const int64_t dim = ctx.argument<int64_t>(1);
        const Tensor self = as_dtype(ctx.saved(0), grad.dtype());
        if (self.dim() == 0) return as_dtype(grad, ctx.input(0).dtype);
        const Tensor& result = ctx.saved(1);
        const Tensor each = states_gradient(self, grad, dim) * delayed(result, dim, 1);
        if (result.numel() == 0) return as_dtype(each, ctx.input(0).dtype);
        const Tensor total = narrow(result, dim, result.size(dim) - 1, 1);
        return as_dtype(masked_fill(each, logical_and(isnan(total), all(self)), kNan),
                        ctx.input(0).dtype);
      });
    });
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return op_cumprod(self, dim, dtype);
}

LS_OP(linear_recurrence, Tensor(const Tensor&, const Tensor&, int64_t),
      "_linear_recurrence(Tensor decay, Tensor input, int dim) -> Tensor")
    .doc("h[i] = decay[i] h[i - 1] + input[i] along a dimension, from h[-1] = 0.")
    .structured(rules::linear_recurrence)
    .batching(batching::along_dims)
    .saves({"decay", "output0 for decay"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const int64_t dim = ctx.argument<int64_t>(2);
      const Tensor states = grad.dim() == 0 ? grad : states_gradient(ctx.saved(0), grad, dim);
      return ctx.gradients(
          [&] {
            if (grad.dim() == 0) return zeros({}, grad.options());
            return states * delayed(ctx.saved(1), dim, 0);
          },
          [&] { return states; });
    });
Tensor linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim) {
  return op_linear_recurrence(decay, input, dim);
}

}  // namespace lockstep
