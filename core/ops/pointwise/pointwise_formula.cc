#include "core/ops/pointwise/pointwise_formula.h"

#include <cmath>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/pointwise/scaled.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

DType floating(std::string_view op, DType dtype, const Tensor& self, const Tensor& other) {
  LS_CHECK(is_floating(dtype), DTypeError,
           "[{}] expected a floating dtype among the operands, got {} and {}. Cast one with "
           "to(dtype).",
           op, to_string(self), to_string(other));
  return dtype;
}

void check_lerp(const Tensor& self, const Tensor& other, std::string_view name) {
  LS_CHECK(self.dtype() == other.dtype(), DTypeError,
           "[lerp] dtypes differ: expected {} of {}, got {}. Cast it with to(dtype).", name,
           to_string(self.dtype()), to_string(other));
}

Outputs rsub_number(const Tensor& self, Scalar other, Scalar alpha) {
  refuse_bool("rsub", self, "logical_not() inverts a mask.");
  const DType dtype = result_type(self, other);
  check_alpha("rsub", dtype, alpha);
  return unary(dtype, self);
}
Outputs addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  const DType dtype = not_bool("addcmul", common_dtype(self, tensor1, tensor2));
  check_factor("addcmul", "value", dtype, value);
  return pointwise_result("addcmul", dtype, {&self, &tensor1, &tensor2});
}
Outputs addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  LS_CHECK(is_floating(tensor1.dtype()) || is_floating(tensor2.dtype()), DTypeError,
           "[addcdiv] the quotient of two integers is not accepted: expected a floating dtype, got "
           "{} and {}. Cast one with to(dtype).",
           to_string(tensor1), to_string(tensor2));
  const DType dtype = common_dtype(self, tensor1, tensor2);
  check_factor("addcdiv", "value", dtype, value);
  return pointwise_result("addcdiv", dtype, {&self, &tensor1, &tensor2});
}
Outputs lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end, "end");
  if (weight.dim() > 0) check_lerp(self, weight, "weight");
  const DType dtype = weight.dim() > 0 ? self.dtype() : common_dtype(self, end, weight);
  return pointwise_result("lerp", floating("lerp", dtype, self, weight), {&self, &end, &weight});
}
Outputs lerp_number(const Tensor& self, const Tensor& end, Scalar weight) {
  require_floating("lerp", self);
  check_factor("lerp", "weight", self.dtype(), weight);
  check_lerp(self, end, "end");
  return pointwise_result("lerp", self.dtype(), {&self, &end});
}
Outputs hypot(const Tensor& self, const Tensor& other) {
  return pointwise_result("hypot", floating("hypot", result_type(self, other), self, other),
                          {&self, &other});
}
Outputs atan2(const Tensor& self, const Tensor& other) {
  return pointwise_result("atan2", to_floating(result_type(self, other)), {&self, &other});
}
Outputs logaddexp(const Tensor& self, const Tensor& other) {
  return pointwise_result("logaddexp", floating("logaddexp", result_type(self, other), self, other),
                          {&self, &other});
}
Outputs xlogy(const Tensor& self, const Tensor& other) {
  return pointwise_result("xlogy", to_floating(result_type(self, other)), {&self, &other});
}
Outputs pow_tensors(const Tensor& self, const Tensor& exponent) {
  return numbers("pow", self, exponent);
}
Outputs pow_of_number(Scalar self, const Tensor& exponent) {
  return one(exponent.sizes(), not_bool("pow", result_type(exponent, self)));
}

}  // namespace
}  // namespace rules

LS_OP(rsub, Tensor(const Tensor&, const Tensor&, Scalar),
      "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    .doc("other - alpha * self.")
    .composite([](const Tensor& self, const Tensor& other, Scalar alpha) {
      return sub(other, self, alpha);
    });
Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return op_rsub(self, other, alpha);
}

LS_OP(rsub_out, const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&),
      "rsub.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")
    .doc("rsub, written into out.")
    .composite([](const Tensor& self, const Tensor& other, Scalar alpha,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_rsub(self, other, alpha));
    });

LS_OP(rsub_number, Tensor(const Tensor&, Scalar, Scalar),
      "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
    .doc("other - alpha * self for a number other.")
    .structured(rules::rsub_number)
    .batching(batching::elementwise)
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return scaled(neg(grad), ctx.argument<Scalar>(2)); });
    });
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return op_rsub_number(self, other, alpha);
}

LS_OP(addcmul, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar),
      "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    .doc("self + value * tensor1 * tensor2.")
    .structured(rules::addcmul)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kPromote)
    .saves({"tensor1 for tensor2", "tensor2 for tensor1"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Scalar value = ctx.argument<Scalar>(3);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(grad, 0); },
          [&] { return ctx.unbroadcast(mul(grad, scaled(ctx.saved(1), value)), 1); },
          [&] { return ctx.unbroadcast(mul(grad, scaled(ctx.saved(0), value)), 2); });
    });
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value) {
  return op_addcmul(self, tensor1, tensor2, value);
}
const Tensor& addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                       const Scalar& value) {
  return op_addcmul.in_place(self, tensor1, tensor2, value);
}

LS_OP(addcdiv, Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar),
      "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    .doc("self + value * tensor1 / tensor2.")
    .structured(rules::addcdiv)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kPromote)
    .saves({"tensor1 for tensor2", "tensor2"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& tensor2 = ctx.saved(1);
      const Scalar value = ctx.argument<Scalar>(3);
      return ctx.gradients([&] { return ctx.unbroadcast(grad, 0); },
                           [&] { return ctx.unbroadcast(div(scaled(grad, value), tensor2), 1); },
                           [&] {
                             const Tensor slope = div(scaled(ctx.saved(0), value), square(tensor2));
                             return ctx.unbroadcast(neg(mul(grad, slope)), 2);
                           });
    });
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value) {
  return op_addcdiv(self, tensor1, tensor2, value);
}
const Tensor& addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                       const Scalar& value) {
  return op_addcdiv.in_place(self, tensor1, tensor2, value);
}

LS_OP(lerp_number, Tensor(const Tensor&, const Tensor&, Scalar),
      "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
    .doc("self + weight * (end - self) for a number weight.")
    .structured(rules::lerp_number)
    .batching(batching::elementwise)
    .in_place()
    .out("Scalar_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const double weight = ctx.argument<Scalar>(2).to_double();
      return ctx.gradients([&] { return ctx.unbroadcast(mul(grad, 1 - weight), 0); },
                           [&] { return ctx.unbroadcast(mul(grad, weight), 1); });
    });
Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight) {
  return op_lerp_number(self, end, weight);
}
const Tensor& lerp_(const Tensor& self, const Tensor& end, const Scalar& weight) {
  return op_lerp_number.in_place(self, end, weight);
}

LS_OP(lerp, Tensor(const Tensor&, const Tensor&, const Tensor&),
      "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
    .doc("self + weight * (end - self).")
    .structured(rules::lerp)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self for weight", "end for weight", "weight for self, end"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return ctx.unbroadcast(mul(grad, rsub(ctx.saved(2), 1)), 0); },
          [&] { return ctx.unbroadcast(mul(grad, ctx.saved(2)), 1); },
          [&] { return ctx.unbroadcast(mul(grad, sub(ctx.saved(1), ctx.saved(0))), 2); });
    });
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  return op_lerp(self, end, weight);
}

LS_OP(hypot, Tensor(const Tensor&, const Tensor&), "hypot(Tensor self, Tensor other) -> Tensor")
    .doc("sqrt(self^2 + other^2) without intermediate overflow.")
    .structured(rules::hypot)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self for self", "other for other", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& result = ctx.saved(2);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(mul(grad, div(ctx.saved(0), result)), 0); },
          [&] { return ctx.unbroadcast(mul(grad, div(ctx.saved(1), result)), 1); });
    });
Tensor hypot(const Tensor& self, const Tensor& other) { return op_hypot(self, other); }

LS_OP(atan2, Tensor(const Tensor&, const Tensor&), "atan2(Tensor self, Tensor other) -> Tensor")
    .doc("Angle of the point (other, self).")
    .structured(rules::atan2)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .autocast(Autocast::kPromote)
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor self = ctx.saved(0).to(grad.dtype());
      const Tensor other = ctx.saved(1).to(grad.dtype());
      const Tensor squared = add(square(self), square(other));
      const Tensor share = masked_fill(div(grad, squared), eq(squared, 0), 0);
      return ctx.gradients([&] { return ctx.unbroadcast(mul(share, other), 0); },
                           [&] { return ctx.unbroadcast(neg(mul(share, self)), 1); });
    });
Tensor atan2(const Tensor& self, const Tensor& other) { return op_atan2(self, other); }

LS_OP(logaddexp, Tensor(const Tensor&, const Tensor&),
      "logaddexp(Tensor self, Tensor other) -> Tensor")
    .doc("log(exp(self) + exp(other)) without intermediate overflow.")
    .structured(rules::logaddexp)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& other = ctx.saved(1);
      return ctx.gradients(
          [&] { return ctx.unbroadcast(mul(grad, sigmoid(sub(self, other))), 0); },
          [&] { return ctx.unbroadcast(mul(grad, sigmoid(sub(other, self))), 1); });
    });
Tensor logaddexp(const Tensor& self, const Tensor& other) { return op_logaddexp(self, other); }

LS_OP(xlogy, Tensor(const Tensor&, const Tensor&),
      "xlogy.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("self * log(other), 0 where self is 0.")
    .structured(rules::xlogy)
    .batching(batching::elementwise)
    .in_place()
    .out("OutTensor")
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& other = ctx.saved(1);
      return ctx.gradients(
          [&] {
            const Tensor flat = logical_and(eq(self, 0), le(other, 0));
            return ctx.unbroadcast(masked_fill(xlogy(grad, other), flat, 0), 0);
          },
          [&] { return ctx.unbroadcast(div(mul(grad, self), other), 1); });
    });
Tensor xlogy(const Tensor& self, const Tensor& other) { return op_xlogy(self, other); }

namespace {
/// The number as the other operand of xlogy, whose result is floating also for integers: -1 has no
/// logarithm though a uint8 would hold it as 255. A number beyond the dtype's largest becomes an
/// infinity, as in PyTorch.
Tensor xlogy_operand(const Scalar& number, const Tensor& other) {
  const DType dtype = result_type(other, number);
  return full({}, number, {DType::kF64, other.device()})
      .to(is_floating(dtype) ? dtype : DType::kF32);
}
}  // namespace

LS_OP(xlogy_number, Tensor(const Tensor&, Scalar),
      "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor")
    .doc("self times the logarithm of a number, 0 where self is 0.")
    .composite([](const Tensor& self, Scalar other) {
      return op_xlogy(self, xlogy_operand(other, self));
    });
LS_OP(xlogy_number_in_place, const Tensor&(const Tensor&, Scalar),
      "xlogy_.Scalar_Other(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .doc("xlogy by a number, written into self.")
    .composite([](const Tensor& self, Scalar other) -> const Tensor& {
      return op_xlogy.in_place(self, xlogy_operand(other, self));
    });
LS_OP(xlogy_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "xlogy.OutScalar_Other(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("xlogy by a number, written into out.")
    .composite([](const Tensor& self, Scalar other, const Tensor& out) -> const Tensor& {
      return op_xlogy.out(self, xlogy_operand(other, self), out);
    });

LS_OP(xlogy_of_number, Tensor(Scalar, const Tensor&),
      "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor")
    .doc("A number times log(other), 0 where the number is 0.")
    .composite([](Scalar self, const Tensor& other) {
      return op_xlogy(xlogy_operand(self, other), other);
    });
LS_OP(xlogy_of_number_out, const Tensor&(Scalar, const Tensor&, const Tensor&),
      "xlogy.OutScalar_Self(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("xlogy of a number, written into out.")
    .composite([](Scalar self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return op_xlogy.out(xlogy_operand(self, other), other, out);
    });

LS_OP(pow_tensors, Tensor(const Tensor&, const Tensor&),
      "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
    .doc("self to the power of exponent.")
    .structured(rules::pow_tensors)
    .batching(batching::elementwise)
    .in_place("Tensor")
    .out("Tensor_Tensor_out")
    .autocast(Autocast::kF32)
    .saves({"self", "exponent", "output for exponent"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor self = ctx.saved(0).to(grad.dtype());
      const Tensor exponent = ctx.saved(1).to(grad.dtype());
      return ctx.gradients(
          [&] {
            const Tensor slope = mul(exponent, pow(self, sub(exponent, 1)));
            return ctx.unbroadcast(masked_fill(mul(grad, slope), eq(exponent, 0), 0), 0);
          },
          [&] {
            // 0 to a non-negative power does not depend on the exponent, though log(0) is -inf.
            const Tensor flat = logical_and(eq(self, 0), ge(exponent, 0));
            const Tensor slope = masked_fill(mul(ctx.saved(2), log(self)), flat, 0);
            return ctx.unbroadcast(mul(grad, slope), 1);
          });
    });
Tensor pow(const Tensor& self, const Tensor& exponent) { return op_pow_tensors(self, exponent); }

LS_OP(pow_of_number, Tensor(Scalar, const Tensor&),
      "pow.Scalar(Scalar self, Tensor exponent) -> Tensor")
    .doc("A number to the power of exponent.")
    .structured(rules::pow_of_number)
    .batching(batching::elementwise)
    .out("Scalar_out")
    .autocast(Autocast::kF32)
    .saves({"exponent", "output"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const double base = ctx.argument<Scalar>(0).to_double();
        const Tensor slope = mul(mul(grad, ctx.saved(1)), std::log(base));
        return base == 0 ? masked_fill(slope, ge(ctx.saved(0), 0), 0) : slope;
      });
    });
Tensor pow(const Scalar& self, const Tensor& exponent) { return op_pow_of_number(self, exponent); }

}  // namespace lockstep
