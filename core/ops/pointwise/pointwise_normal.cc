#include "core/ops/pointwise/pointwise_normal.h"

#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"

namespace lockstep {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kTwoByRootPi = 1.12837916709551257390;
constexpr double kInverseRootTwo = 0.70710678118654752440;
constexpr double kRootTwoPi = 2.50662827463100050242;

/// 16 bits as float32, for slopes that are differences.
Tensor at_least_f32(const Tensor& x) { return as_dtype(x, promote(x.dtype(), DType::kF32)); }

}  // namespace

LS_OP(erfinv, Tensor(const Tensor&), "erfinv(Tensor self) -> Tensor")
    .doc("The inverse of erf; NaN outside of [-1, 1].")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kF32)
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad * exp(square(ctx.saved(0))) * (1 / kTwoByRootPi); });
    });
Tensor erfinv(const Tensor& self) { return op_erfinv(self); }

LS_OP(special_erfcx, Tensor(const Tensor&), "special_erfcx(Tensor self) -> Tensor")
    .doc("erfc times exp(self^2).")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return grad * (at_least_f32(ctx.saved(0)) * at_least_f32(ctx.saved(1)) * 2 - kTwoByRootPi);
      });
    });
Tensor special_erfcx(const Tensor& self) { return op_special_erfcx(self); }

LS_OP(special_ndtr, Tensor(const Tensor&), "special_ndtr(Tensor self) -> Tensor")
    .doc("The standard normal distribution function.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad * exp(square(ctx.saved(0)) * -0.5) * (1 / kRootTwoPi); });
    });
Tensor special_ndtr(const Tensor& self) { return op_special_ndtr(self); }

LS_OP(special_log_ndtr, Tensor(const Tensor&), "special_log_ndtr(Tensor self) -> Tensor")
    .doc("The logarithm of the standard normal distribution function.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        // The density by the distribution, without underflow of either.
        return grad / special_erfcx(ctx.saved(0) * -kInverseRootTwo) *
               (kTwoByRootPi * kInverseRootTwo);
      });
    });
Tensor special_log_ndtr(const Tensor& self) { return op_special_log_ndtr(self); }

LS_OP(special_ndtri, Tensor(const Tensor&), "special_ndtri(Tensor self) -> Tensor")
    .doc("The inverse of the standard normal distribution function.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad * exp(square(ctx.saved(0)) * 0.5) * kRootTwoPi; });
    });
Tensor special_ndtri(const Tensor& self) { return op_special_ndtri(self); }

LS_OP(special_entr, Tensor(const Tensor&), "special_entr(Tensor self) -> Tensor")
    .doc("-self * log(self): 0 at 0, -inf below.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        return grad * where(isnan(self), self, neg(log(self)) - 1);
      });
    });
Tensor special_entr(const Tensor& self) { return op_special_entr(self); }

LS_OP(sinc, Tensor(const Tensor&), "sinc(Tensor self) -> Tensor")
    .doc("sin(pi self) / (pi self), 1 at 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor zero = eq(ctx.saved(0), 0);
        const Tensor x = masked_fill(at_least_f32(ctx.saved(0)), zero, 1);
        const Tensor angle = x * kPi;
        return grad * masked_fill((angle * cos(angle) - sin(angle)) / (angle * x), zero, 0);
      });
    });
Tensor sinc(const Tensor& self) { return op_sinc(self); }

}  // namespace lockstep
