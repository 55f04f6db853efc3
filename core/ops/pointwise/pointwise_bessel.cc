#include "core/ops/pointwise/pointwise_bessel.h"

#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/as_dtype.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace {

/// 16 bits as float32, since slopes are differences.
Tensor in_f32(const Tensor& x) { return as_dtype(x, promote(x.dtype(), DType::kF32)); }

/// `slope(x, y)` for the saved argument x and result y, 0.5 where x is 0 or so near that `slope`
/// would divide by it.
template <class Slope>
Tensor half_at_zero(VjpContext& ctx, const Slope& slope) {
  const Tensor x = in_f32(ctx.saved(0));
  const Tensor near = le(abs(x), machine_epsilon(x.dtype()));
  return masked_fill(slope(masked_fill(x, near, 1), in_f32(ctx.saved(1))), near, 0.5);
}

}  // namespace

LS_OP(i0, Tensor(const Tensor&), "i0(Tensor self) -> Tensor")
    .doc("The modified Bessel function of the first kind of order 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad * special_i1(ctx.saved(0)); });
    });
Tensor i0(const Tensor& self) { return op_i0(self); }

LS_OP(special_i0e, Tensor(const Tensor&), "special_i0e(Tensor self) -> Tensor")
    .doc("i0 times exp(-|self|).")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor x = in_f32(ctx.saved(0));
        return grad * (special_i1e(x) - sign(x) * in_f32(ctx.saved(1)));
      });
    });
Tensor special_i0e(const Tensor& self) { return op_special_i0e(self); }

LS_OP(special_i1, Tensor(const Tensor&), "special_i1(Tensor self) -> Tensor")
    .doc("The modified Bessel function of the first kind of order 1.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return grad *
               half_at_zero(ctx, [](const Tensor& x, const Tensor& y) { return i0(x) - y / x; });
      });
    });
Tensor special_i1(const Tensor& self) { return op_special_i1(self); }

LS_OP(special_i1e, Tensor(const Tensor&), "special_i1e(Tensor self) -> Tensor")
    .doc("special_i1 times exp(-|self|).")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return grad * half_at_zero(ctx, [](const Tensor& x, const Tensor& y) {
                 return special_i0e(x) - y * (sign(x) + reciprocal(x));
               });
      });
    });
Tensor special_i1e(const Tensor& self) { return op_special_i1e(self); }

LS_OP(special_bessel_j0, Tensor(const Tensor&), "special_bessel_j0(Tensor self) -> Tensor")
    .doc("The Bessel function of the first kind of order 0.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return neg(grad * special_bessel_j1(ctx.saved(0))); });
    });
Tensor special_bessel_j0(const Tensor& self) { return op_special_bessel_j0(self); }

LS_OP(special_bessel_j1, Tensor(const Tensor&), "special_bessel_j1(Tensor self) -> Tensor")
    .doc("The Bessel function of the first kind of order 1.")
    .structured(rules::floating_unary)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return grad * half_at_zero(ctx, [](const Tensor& x, const Tensor& y) {
                 return special_bessel_j0(x) - y / x;
               });
      });
    });
Tensor special_bessel_j1(const Tensor& self) { return op_special_bessel_j1(self); }

}  // namespace lockstep
