#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

Outputs pow(const Tensor& self, Scalar exponent) {
  const DType dtype = result_type(self, exponent);
  LS_CHECK(is_floating(dtype) || exponent.to_int() >= 0, Error,
           "[pow] integers cannot be raised to a negative integer: got {} and {}. Cast to a "
           "floating dtype.",
           to_string(self), to_string(exponent));
  // In f32, also of integers, an exponent beyond the largest number is an infinity.
  if (dtype != DType::kF32) check_holds("pow", "exponent", dtype, exponent);
  return unary(dtype, self);
}
Outputs neg(const Tensor& self) {
  refuse_bool("neg", self, "logical_not() inverts a mask.");
  return unary(self.dtype(), self);
}
Outputs abs(const Tensor& self) {
  refuse_bool("abs", self, "Cast it with to(dtype).");
  return unary(self.dtype(), self);
}
Outputs square(const Tensor& self) { return unary(result_type(self, 2), self); }
Outputs sign(const Tensor& self) { return unary(self.dtype(), self); }

}  // namespace
}  // namespace rules

LS_OP(neg, Tensor(const Tensor&), "neg(Tensor self) -> Tensor")
    .doc("-self.")
    .structured(rules::neg)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(grad); });
    });
Tensor neg(const Tensor& self) { return op_neg(self); }

LS_OP(abs, Tensor(const Tensor&), "abs(Tensor self) -> Tensor")
    .doc("|self|.")
    .structured(rules::abs)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, sign(ctx.saved(0))); });
    });
Tensor abs(const Tensor& self) { return op_abs(self); }

LS_OP(square, Tensor(const Tensor&), "square(Tensor self) -> Tensor")
    .doc("self * self.")
    .structured(rules::square)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(mul(grad, 2), ctx.saved(0)); });
    });
Tensor square(const Tensor& self) { return op_square(self); }

LS_OP(sign, Tensor(const Tensor&), "sign(Tensor self) -> Tensor")
    .doc("-1, 0 or 1.")
    .structured(rules::sign)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
Tensor sign(const Tensor& self) { return op_sign(self); }

LS_OP(exp, Tensor(const Tensor&), "exp(Tensor self) -> Tensor")
    .doc("e to the power of self.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, ctx.saved(0)); });
    });
Tensor exp(const Tensor& self) { return op_exp(self); }

LS_OP(log, Tensor(const Tensor&), "log(Tensor self) -> Tensor")
    .doc("Natural logarithm.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, ctx.saved(0)); });
    });
Tensor log(const Tensor& self) { return op_log(self); }

LS_OP(sqrt, Tensor(const Tensor&), "sqrt(Tensor self) -> Tensor")
    .doc("Square root.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, mul(ctx.saved(0), 2)); });
    });
Tensor sqrt(const Tensor& self) { return op_sqrt(self); }

LS_OP(rsqrt, Tensor(const Tensor&), "rsqrt(Tensor self) -> Tensor")
    .doc("1 / sqrt(self).")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(mul(grad, -0.5), pow(ctx.saved(0), 3)); });
    });
Tensor rsqrt(const Tensor& self) { return op_rsqrt(self); }

LS_OP(reciprocal, Tensor(const Tensor&), "reciprocal(Tensor self) -> Tensor")
    .doc("1 / self.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(mul(grad, square(ctx.saved(0)))); });
    });
Tensor reciprocal(const Tensor& self) { return op_reciprocal(self); }

LS_OP(sin, Tensor(const Tensor&), "sin(Tensor self) -> Tensor")
    .doc("Sine of self in radians.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, cos(ctx.saved(0))); });
    });
Tensor sin(const Tensor& self) { return op_sin(self); }

LS_OP(cos, Tensor(const Tensor&), "cos(Tensor self) -> Tensor")
    .doc("Cosine of self in radians.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(mul(grad, sin(ctx.saved(0)))); });
    });
Tensor cos(const Tensor& self) { return op_cos(self); }

LS_OP(pow, Tensor(const Tensor&, Scalar),
      "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
    .doc("self to the power of a number.")
    .structured(rules::pow)
    .batching(batching::elementwise)
    .in_place("Scalar")
    .out("Tensor_Scalar_out")
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const double exponent = ctx.argument<Scalar>(1).to_double();
        if (exponent == 0) return zeros_like(grad);
        return mul(grad, mul(pow(ctx.saved(0), exponent - 1), exponent));
      });
    });
Tensor pow(const Tensor& self, const Scalar& exponent) { return op_pow(self, exponent); }
const Tensor& pow_(const Tensor& self, const Scalar& exponent) {
  return op_pow.in_place(self, exponent);
}

}  // namespace lockstep
