#include "core/ops/pointwise/pointwise.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/pointwise/choice.h"
#include "core/ops/pointwise/number_tensor.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/ops/pointwise/scaled.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

Outputs add(const Tensor& self, const Tensor& other, Scalar alpha) {
  Outputs outputs = binary("add", self, other);
  check_alpha("add", outputs.specs[0].dtype, alpha);
  return outputs;
}
Outputs sub(const Tensor& self, const Tensor& other, Scalar alpha) {
  refuse_bool("sub", self, "logical_not() inverts a mask.");
  refuse_bool("sub", other, "logical_not() inverts a mask.");
  Outputs outputs = binary("sub", self, other);
  check_alpha("sub", outputs.specs[0].dtype, alpha);
  return outputs;
}
Outputs add_number(const Tensor& self, Scalar other, Scalar alpha) {
  const DType dtype = result_type(self, other);
  check_alpha("add", dtype, alpha);
  return unary(dtype, self);
}
Outputs sub_number(const Tensor& self, Scalar other, Scalar alpha) {
  refuse_bool("sub", self, "logical_not() inverts a mask.");
  const DType dtype = result_type(self, other);
  check_alpha("sub", dtype, alpha);
  return unary(dtype, self);
}
Outputs mul(const Tensor& self, const Tensor& other) { return binary("mul", self, other); }
Outputs mul_number(const Tensor& self, Scalar other) {
  return unary(result_type(self, other), self);
}
Outputs div(const Tensor& self, const Tensor& other) {
  return pointwise_result("div", to_floating(result_type(self, other)), {&self, &other});
}
Outputs div_number(const Tensor& self, Scalar other) {
  return unary(to_floating(result_type(self, other)), self);
}
Outputs maximum(const Tensor& self, const Tensor& other) { return binary("maximum", self, other); }
Outputs minimum(const Tensor& self, const Tensor& other) { return binary("minimum", self, other); }
Outputs where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  LS_CHECK(condition.dtype() == DType::kBool || condition.dtype() == DType::kU8, DTypeError,
           "[where] condition must be a bool tensor, got {}. Compare it: ne(condition, 0).",
           to_string(condition));
  return pointwise_result("where", result_type(self, other), {&condition, &self, &other});
}
Outputs masked_fill(const Tensor& self, const Tensor& mask, Scalar value) {
  check_holds("masked_fill", "value", self.dtype(), value);
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_fill] mask must be a bool tensor, got {}. Compare it: ne(mask, 0).",
           to_string(mask));
  return one(broadcast("masked_fill", self.sizes(), mask.sizes()), self.dtype());
}

}  // namespace
}  // namespace rules

LS_OP(add, Tensor(const Tensor&, const Tensor&, Scalar),
      "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .doc("self + alpha * other.")
    .structured(rules::add)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return ctx.unbroadcast(grad, 0); },
          [&] { return ctx.unbroadcast(scaled(grad, ctx.argument<Scalar>(2)), 1); });
    });
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return op_add(self, other, alpha);
}
const Tensor& add_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return op_add.in_place(self, other, alpha);
}
const Tensor& add_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      const Scalar& alpha) {
  return op_add.out(self, other, alpha, out);
}

LS_OP(add_number, Tensor(const Tensor&, Scalar, Scalar),
      "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .doc("self + alpha * other for a number other.")
    .structured(rules::add_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(grad, 0); });
    });
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return op_add_number(self, other, alpha);
}
const Tensor& add_(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return op_add_number.in_place(self, other, alpha);
}

LS_OP(sub, Tensor(const Tensor&, const Tensor&, Scalar),
      "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .doc("self - alpha * other.")
    .structured(rules::sub)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return ctx.unbroadcast(grad, 0); },
          [&] { return ctx.unbroadcast(scaled(neg(grad), ctx.argument<Scalar>(2)), 1); });
    });
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return op_sub(self, other, alpha);
}
const Tensor& sub_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return op_sub.in_place(self, other, alpha);
}
const Tensor& sub_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      const Scalar& alpha) {
  return op_sub.out(self, other, alpha, out);
}

LS_OP(sub_number, Tensor(const Tensor&, Scalar, Scalar),
      "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .doc("self - alpha * other for a number other.")
    .structured(rules::sub_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(grad, 0); });
    });
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return op_sub_number(self, other, alpha);
}
const Tensor& sub_(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return op_sub_number.in_place(self, other, alpha);
}

LS_OP(mul, Tensor(const Tensor&, const Tensor&), "mul.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("Elementwise product.")
    .structured(rules::mul)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self for other", "other for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(mul(grad, ctx.saved(1)), 0); },
                           [&] { return ctx.unbroadcast(mul(grad, ctx.saved(0)), 1); });
    });
Tensor mul(const Tensor& self, const Tensor& other) { return op_mul(self, other); }
const Tensor& mul_(const Tensor& self, const Tensor& other) { return op_mul.in_place(self, other); }
const Tensor& mul_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return op_mul.out(self, other, out);
}

LS_OP(mul_number, Tensor(const Tensor&, Scalar), "mul.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc("self times a number.")
    .structured(rules::mul_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(mul(grad, ctx.argument<Scalar>(1)), 0); });
    });
Tensor mul(const Tensor& self, const Scalar& other) { return op_mul_number(self, other); }
const Tensor& mul_(const Tensor& self, const Scalar& other) {
  return op_mul_number.in_place(self, other);
}

LS_OP(div, Tensor(const Tensor&, const Tensor&), "div.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("Elementwise quotient; integers become float32.")
    .structured(rules::div)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self for other", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(div(grad, ctx.saved(1)), 0); },
                           [&] {
                             const Tensor& other = ctx.saved(1);
                             const Tensor slope = div(div(ctx.saved(0), other), other);
                             return ctx.unbroadcast(neg(mul(grad, slope)), 1);
                           });
    });
Tensor div(const Tensor& self, const Tensor& other) { return op_div(self, other); }
const Tensor& div_(const Tensor& self, const Tensor& other) { return op_div.in_place(self, other); }
const Tensor& div_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return op_div.out(self, other, out);
}

LS_OP(div_number, Tensor(const Tensor&, Scalar), "div.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc("self divided by a number.")
    .structured(rules::div_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(div(grad, ctx.argument<Scalar>(1)), 0); });
    });
Tensor div(const Tensor& self, const Scalar& other) { return op_div_number(self, other); }
const Tensor& div_(const Tensor& self, const Scalar& other) {
  return op_div_number.in_place(self, other);
}

LS_OP(maximum, Tensor(const Tensor&, const Tensor&), "maximum(Tensor self, Tensor other) -> Tensor")
    .doc("The larger of the two; NaN when either is.")
    .structured(rules::maximum)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& other = ctx.saved(1);
      const Tensor equal = eq(self, other);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(share_of_choice(grad, lt(self, other), equal), 0); },
          [&] { return ctx.unbroadcast(share_of_choice(grad, gt(self, other), equal), 1); });
    });
Tensor maximum(const Tensor& self, const Tensor& other) { return op_maximum(self, other); }

LS_OP(max_other, Tensor(const Tensor&, const Tensor&),
      "max.other(Tensor self, Tensor other) -> Tensor")
    .doc("maximum by another name.")
    .composite([](const Tensor& self, const Tensor& other) { return op_maximum(self, other); });
LS_OP(max_other_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "max.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("maximum, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return op_maximum.out(self, other, out);
    });

LS_OP(minimum, Tensor(const Tensor&, const Tensor&), "minimum(Tensor self, Tensor other) -> Tensor")
    .doc("The smaller of the two; NaN when either is.")
    .structured(rules::minimum)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& other = ctx.saved(1);
      const Tensor equal = eq(self, other);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(share_of_choice(grad, gt(self, other), equal), 0); },
          [&] { return ctx.unbroadcast(share_of_choice(grad, lt(self, other), equal), 1); });
    });
Tensor minimum(const Tensor& self, const Tensor& other) { return op_minimum(self, other); }

LS_OP(min_other, Tensor(const Tensor&, const Tensor&),
      "min.other(Tensor self, Tensor other) -> Tensor")
    .doc("minimum by another name.")
    .composite([](const Tensor& self, const Tensor& other) { return op_minimum(self, other); });
LS_OP(min_other_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "min.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("minimum, written into out.")
    .composite([](const Tensor& self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return op_minimum.out(self, other, out);
    });

LS_OP(where, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
    .doc("self where condition is true, else other.")
    .structured(rules::where)
    .batching(batching::elementwise)
    .out("self_out")
    .saves({"condition"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& condition = ctx.saved(0);
      const Tensor zero = zeros({}, grad.options());
      return ctx.gradients([] { return Tensor(); },
                           [&] { return ctx.unbroadcast(where(condition, grad, zero), 1); },
                           [&] { return ctx.unbroadcast(where(condition, zero, grad), 2); });
    });
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  return op_where(condition, self, other);
}

LS_OP(where_of_number, Tensor(const Tensor&, Scalar, const Tensor&),
      "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
    .doc("A number where condition is true, else other.")
    .composite([](const Tensor& condition, Scalar self, const Tensor& other) {
      return op_where(condition, number_tensor(self, other), other);
    });

LS_OP(where_number, Tensor(const Tensor&, const Tensor&, Scalar),
      "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
    .doc("self where condition is true, else a number.")
    .composite([](const Tensor& condition, const Tensor& self, Scalar other) {
      return op_where(condition, self, number_tensor(other, self));
    });

LS_OP(where_numbers, Tensor(const Tensor&, Scalar, Scalar),
      "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
    .doc("One number where condition is true, else another.")
    .composite([](const Tensor& condition, Scalar self, Scalar other) {
      const TensorOptions options{Promotion().add(self).add(other).result(), condition.device()};
      return op_where(condition, full({}, self, options), full({}, other, options));
    });

LS_OP(masked_fill, Tensor(const Tensor&, const Tensor&, Scalar),
      "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
    .doc("self with value where mask is true.")
    .structured(rules::masked_fill)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .saves({"mask"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(masked_fill(grad, ctx.saved(0), 0), 0); },
                           [] { return Tensor(); });
    });
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return op_masked_fill(self, mask, value);
}
const Tensor& masked_fill_(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return op_masked_fill.in_place(self, mask, value);
}

}  // namespace lockstep
