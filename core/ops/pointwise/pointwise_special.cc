#include "core/ops/pointwise/pointwise_special.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace rules {
namespace {

Outputs polygamma(int64_t n, const Tensor& self) {
  // The formula has n! in it, and adds some n terms.
  LS_CHECK(n >= 0 && n <= 170, Error,
           "[polygamma] expected an order from 0 to 170, whose factorial float64 holds, got {}.",
           n);
  return unary(to_floating(self.dtype()), self);
}

}  // namespace
}  // namespace rules

namespace {

constexpr double kLog2 = 0.69314718055994530942;
constexpr double kLog10 = 2.30258509299404568402;

/// The derivative of erf: 2 / sqrt(pi) e^(-x^2).
Tensor bell(const Tensor& x) { return mul(exp(neg(square(x))), 1.12837916709551257390); }

}  // namespace

LS_OP(exp2, Tensor(const Tensor&), "exp2(Tensor self) -> Tensor")
    .doc("2 to the power of self.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(mul(grad, ctx.saved(0)), kLog2); });
    });
Tensor exp2(const Tensor& self) { return op_exp2(self); }

LS_OP(expm1, Tensor(const Tensor&), "expm1(Tensor self) -> Tensor")
    .doc("exp(self) - 1, without cancellation near 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, add(ctx.saved(0), 1)); });
    });
Tensor expm1(const Tensor& self) { return op_expm1(self); }

LS_OP(log1p, Tensor(const Tensor&), "log1p(Tensor self) -> Tensor")
    .doc("log(1 + self), without cancellation near 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, add(ctx.saved(0), 1)); });
    });
Tensor log1p(const Tensor& self) { return op_log1p(self); }

LS_OP(log2, Tensor(const Tensor&), "log2(Tensor self) -> Tensor")
    .doc("Base-2 logarithm.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, mul(ctx.saved(0), kLog2)); });
    });
Tensor log2(const Tensor& self) { return op_log2(self); }

LS_OP(log10, Tensor(const Tensor&), "log10(Tensor self) -> Tensor")
    .doc("Base-10 logarithm.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, mul(ctx.saved(0), kLog10)); });
    });
Tensor log10(const Tensor& self) { return op_log10(self); }

LS_OP(tan, Tensor(const Tensor&), "tan(Tensor self) -> Tensor")
    .doc("Tangent of self in radians.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, add(square(ctx.saved(0)), 1)); });
    });
Tensor tan(const Tensor& self) { return op_tan(self); }

LS_OP(asin, Tensor(const Tensor&), "asin(Tensor self) -> Tensor")
    .doc("Inverse sine; NaN outside of [-1, 1].")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, rsqrt(rsub(square(ctx.saved(0)), 1))); });
    });
Tensor asin(const Tensor& self) { return op_asin(self); }

LS_OP(acos, Tensor(const Tensor&), "acos(Tensor self) -> Tensor")
    .doc("Inverse cosine; NaN outside of [-1, 1].")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(mul(grad, rsqrt(rsub(square(ctx.saved(0)), 1)))); });
    });
Tensor acos(const Tensor& self) { return op_acos(self); }

LS_OP(atan, Tensor(const Tensor&), "atan(Tensor self) -> Tensor")
    .doc("Inverse tangent.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, add(square(ctx.saved(0)), 1)); });
    });
Tensor atan(const Tensor& self) { return op_atan(self); }

LS_OP(sinh, Tensor(const Tensor&), "sinh(Tensor self) -> Tensor")
    .doc("Hyperbolic sine.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, cosh(ctx.saved(0))); });
    });
Tensor sinh(const Tensor& self) { return op_sinh(self); }

LS_OP(cosh, Tensor(const Tensor&), "cosh(Tensor self) -> Tensor")
    .doc("Hyperbolic cosine.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, sinh(ctx.saved(0))); });
    });
Tensor cosh(const Tensor& self) { return op_cosh(self); }

LS_OP(asinh, Tensor(const Tensor&), "asinh(Tensor self) -> Tensor")
    .doc("Inverse hyperbolic sine.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, rsqrt(add(square(ctx.saved(0)), 1))); });
    });
Tensor asinh(const Tensor& self) { return op_asinh(self); }

LS_OP(acosh, Tensor(const Tensor&), "acosh(Tensor self) -> Tensor")
    .doc("Inverse hyperbolic cosine; NaN below 1.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, rsqrt(sub(square(ctx.saved(0)), 1))); });
    });
Tensor acosh(const Tensor& self) { return op_acosh(self); }

LS_OP(atanh, Tensor(const Tensor&), "atanh(Tensor self) -> Tensor")
    .doc("Inverse hyperbolic tangent; NaN outside of [-1, 1].")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return div(grad, rsub(square(ctx.saved(0)), 1)); });
    });
Tensor atanh(const Tensor& self) { return op_atanh(self); }

LS_OP(erf, Tensor(const Tensor&), "erf(Tensor self) -> Tensor")
    .doc("Error function.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, bell(ctx.saved(0))); });
    });
Tensor erf(const Tensor& self) { return op_erf(self); }

LS_OP(erfc, Tensor(const Tensor&), "erfc(Tensor self) -> Tensor")
    .doc("1 - erf(self), without cancellation above 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(mul(grad, bell(ctx.saved(0)))); });
    });
Tensor erfc(const Tensor& self) { return op_erfc(self); }

LS_OP(lgamma, Tensor(const Tensor&), "lgamma(Tensor self) -> Tensor")
    .doc("log of |gamma(self)|.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, digamma(ctx.saved(0))); });
    });
Tensor lgamma(const Tensor& self) { return op_lgamma(self); }

LS_OP(digamma, Tensor(const Tensor&), "digamma(Tensor self) -> Tensor")
    .doc("The derivative of lgamma.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return mul(grad, polygamma(1, ctx.saved(0))); });
    });
Tensor digamma(const Tensor& self) { return op_digamma(self); }

LS_OP(polygamma, Tensor(int64_t, const Tensor&), "polygamma(int n, Tensor self) -> Tensor")
    .doc("The n-th derivative of digamma, n >= 0.")
    .structured(rules::polygamma)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return mul(grad, polygamma(ctx.argument<int64_t>(0) + 1, ctx.saved(0))); });
    });
Tensor polygamma(int64_t n, const Tensor& self) { return op_polygamma(n, self); }

LS_OP(polygamma_in_place, const Tensor&(const Tensor&, int64_t),
      "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)")
    .doc("polygamma, written into self.")
    .composite([](const Tensor& self, int64_t n) -> const Tensor& {
      // The derivative needs self as it was; saved itself, it would also keep its own graph alive.
      return copy_(self, polygamma(n, self.clone()));
    });

LS_OP(rad2deg, Tensor(const Tensor&), "rad2deg(Tensor self) -> Tensor")
    .doc("Converts radians to degrees.")
    .composite([](const Tensor& self) { return mul(self, 57.2957795130823208768); });
Tensor rad2deg(const Tensor& self) { return op_rad2deg(self); }

LS_OP(rad2deg_in_place, const Tensor&(const Tensor&), "rad2deg_(Tensor(a!) self) -> Tensor(a!)")
    .doc("rad2deg, written into self.")
    .composite([](const Tensor& self) -> const Tensor& {
      return mul_(self, 57.2957795130823208768);
    });

LS_OP(rad2deg_out, const Tensor&(const Tensor&, const Tensor&),
      "rad2deg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("rad2deg, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_rad2deg(self));
    });

LS_OP(deg2rad, Tensor(const Tensor&), "deg2rad(Tensor self) -> Tensor")
    .doc("Converts degrees to radians.")
    .composite([](const Tensor& self) { return mul(self, 0.01745329251994329577); });
Tensor deg2rad(const Tensor& self) { return op_deg2rad(self); }

LS_OP(deg2rad_in_place, const Tensor&(const Tensor&), "deg2rad_(Tensor(a!) self) -> Tensor(a!)")
    .doc("deg2rad, written into self.")
    .composite([](const Tensor& self) -> const Tensor& {
      return mul_(self, 0.01745329251994329577);
    });

LS_OP(deg2rad_out, const Tensor&(const Tensor&, const Tensor&),
      "deg2rad.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("deg2rad, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_deg2rad(self));
    });

}  // namespace lockstep
