#include "core/ops/pointwise/pointwise_pairs.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/choice.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/ops/pointwise/promotion.h"

namespace lockstep {

namespace rules {
namespace {

Outputs floating_pair(std::string_view op, const Tensor& self, const Tensor& other) {
  return pointwise_result(op, to_floating(result_type(self, other)), {&self, &other});
}
DType common_floating(std::string_view op, const Tensor& self, const Tensor& other) {
  const DType dtype = result_type(self, other);
  LS_CHECK(is_floating(dtype), DTypeError,
           "[{}] expected a floating dtype among the operands, got {} and {}. Cast one with "
           "to(dtype).",
           op, to_string(self), to_string(other));
  return dtype;
}
Outputs integers(std::string_view op, const Tensor& self, const Tensor& other) {
  LS_CHECK(is_integral(result_type(self, other)), DTypeError,
           "[{}] expected integers, got {} and {}. Cast them with to(dtype).", op, to_string(self),
           to_string(other));
  return numbers(op, self, other);
}

Outputs copysign(const Tensor& self, const Tensor& other) {
  return floating_pair("copysign", self, other);
}
Outputs fmax(const Tensor& self, const Tensor& other) {
  return narrowed("fmax", result_type(self, other), self, other);
}
Outputs fmin(const Tensor& self, const Tensor& other) {
  return narrowed("fmin", result_type(self, other), self, other);
}
Outputs heaviside(const Tensor& self, const Tensor& values) {
  LS_CHECK(self.dtype() == values.dtype(), DTypeError,
           "[heaviside] dtypes differ: got {} and {}. Cast one with to(dtype).", to_string(self),
           to_string(values));
  return binary("heaviside", self, values);
}
Outputs gcd(const Tensor& self, const Tensor& other) { return integers("gcd", self, other); }
Outputs lcm(const Tensor& self, const Tensor& other) { return integers("lcm", self, other); }
Outputs logaddexp2(const Tensor& self, const Tensor& other) {
  return pointwise_result("logaddexp2", common_floating("logaddexp2", self, other),
                          {&self, &other});
}
Outputs nextafter(const Tensor& self, const Tensor& other) {
  const DType dtype = common_floating("nextafter", self, other);
  Outputs outputs = pointwise_result("nextafter", dtype, {&self, &other});
  // Neighbours are those of one dtype: operands of another are rounded to it first.
  if (self.dtype() != dtype || other.dtype() != dtype) outputs.compute = dtype;
  return outputs;
}
Outputs xlog1py(const Tensor& self, const Tensor& other) {
  return floating_pair("special_xlog1py", self, other);
}
Outputs zeta(const Tensor& self, const Tensor& other) {
  return floating_pair("special_zeta", self, other);
}

}  // namespace
}  // namespace rules

namespace {

constexpr double kNaturalLog2 = 0.69314718055994530942;

/// The derivative of fmax and fmin, given where self compares as they ask for.
Gradients of_choice(VjpContext& ctx, const Tensor& grad, const Tensor& compares) {
  const Tensor& self = ctx.saved(0);
  const Tensor& other = ctx.saved(1);
  const Tensor equal = eq(self, other);
  const Tensor self_taken = logical_or(compares, isnan(other));
  const Tensor other_lost = logical_and(self_taken, logical_not(equal));
  return ctx.gradients(
      [&] { return ctx.unbroadcast(share_of_choice(grad, logical_not(self_taken), equal), 0); },
      [&] { return ctx.unbroadcast(share_of_choice(grad, other_lost, equal), 1); });
}

/// The number as the other operand of a floating result; beyond the dtype's largest it is infinite.
Tensor operand(const Scalar& number, const Tensor& other) {
  const DType dtype = result_type(other, number);
  return full({}, number, {DType::kF64, other.device()}).to(to_floating(dtype));
}

}  // namespace

LS_OP(copysign, Tensor(const Tensor&, const Tensor&),
      "copysign.Tensor(Tensor self, Tensor other) -> Tensor")
    .doc("self with the sign of other.")
    .structured(rules::copysign)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self for self", "other for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] {
            const Tensor& self = ctx.saved(0);
            const Tensor one = ones({}, grad.options());
            const Tensor slope = sign(self) * copysign(one, ctx.saved(1));
            return ctx.unbroadcast(grad * where(isnan(self), self, slope), 0);
          },
          [&] { return ctx.unbroadcast(zeros_like(grad), 1); });
    });
Tensor copysign(const Tensor& self, const Tensor& other) { return op_copysign(self, other); }
LS_OP(copysign_number, Tensor(const Tensor&, Scalar),
      "copysign.Scalar(Tensor self, Scalar other) -> Tensor")
    .doc("self with the sign of a number.")
    .composite([](const Tensor& self, Scalar other) {
      return op_copysign(self, operand(other, self));
    });
LS_OP(copysign_number_in_place, const Tensor&(const Tensor&, Scalar),
      "copysign_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")
    .doc("copysign by a number, written into self.")
    .composite([](const Tensor& self, Scalar other) -> const Tensor& {
      return op_copysign.in_place(self, operand(other, self));
    });
LS_OP(copysign_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "copysign.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("copysign by a number, written into out.")
    .composite([](const Tensor& self, Scalar other, const Tensor& out) -> const Tensor& {
      return op_copysign.out(self, operand(other, self), out);
    });

LS_OP(fmax, Tensor(const Tensor&, const Tensor&), "fmax(Tensor self, Tensor other) -> Tensor")
    .doc("The larger of the two; NaN when both are.")
    .structured(rules::fmax)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return of_choice(ctx, grad, ge(ctx.saved(0), ctx.saved(1)));
    });
Tensor fmax(const Tensor& self, const Tensor& other) { return op_fmax(self, other); }
LS_OP(fmin, Tensor(const Tensor&, const Tensor&), "fmin(Tensor self, Tensor other) -> Tensor")
    .doc("The smaller of the two; NaN when both are.")
    .structured(rules::fmin)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return of_choice(ctx, grad, le(ctx.saved(0), ctx.saved(1)));
    });
Tensor fmin(const Tensor& self, const Tensor& other) { return op_fmin(self, other); }

LS_OP(heaviside, Tensor(const Tensor&, const Tensor&),
      "heaviside(Tensor self, Tensor values) -> Tensor")
    .doc("0 below 0, 1 above 0 and values at 0.")
    .structured(rules::heaviside)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .not_differentiable("a step has no useful slope");
Tensor heaviside(const Tensor& self, const Tensor& values) { return op_heaviside(self, values); }
LS_OP(gcd, Tensor(const Tensor&, const Tensor&), "gcd(Tensor self, Tensor other) -> Tensor")
    .doc("The greatest common divisor.")
    .structured(rules::gcd)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .not_differentiable("the result is an integer");
Tensor gcd(const Tensor& self, const Tensor& other) { return op_gcd(self, other); }
LS_OP(lcm, Tensor(const Tensor&, const Tensor&), "lcm(Tensor self, Tensor other) -> Tensor")
    .doc("The least common multiple.")
    .structured(rules::lcm)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .not_differentiable("the result is an integer");
Tensor lcm(const Tensor& self, const Tensor& other) { return op_lcm(self, other); }

LS_OP(logaddexp2, Tensor(const Tensor&, const Tensor&),
      "logaddexp2(Tensor self, Tensor other) -> Tensor")
    .doc("log2(2^self + 2^other) without intermediate overflow.")
    .structured(rules::logaddexp2)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor apart = (ctx.saved(0) - ctx.saved(1)) * kNaturalLog2;
      return ctx.gradients([&] { return ctx.unbroadcast(grad * sigmoid(apart), 0); },
                           [&] { return ctx.unbroadcast(grad * sigmoid(neg(apart)), 1); });
    });
Tensor logaddexp2(const Tensor& self, const Tensor& other) { return op_logaddexp2(self, other); }
LS_OP(nextafter, Tensor(const Tensor&, const Tensor&),
      "nextafter(Tensor self, Tensor other) -> Tensor")
    .doc("The next number of the dtype after self in the direction of other.")
    .structured(rules::nextafter)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self for self", "other for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return ctx.unbroadcast(masked_fill(grad, eq(ctx.saved(0), ctx.saved(1)), 0), 0); },
          [&] { return ctx.unbroadcast(zeros_like(grad), 1); });
    });
Tensor nextafter(const Tensor& self, const Tensor& other) { return op_nextafter(self, other); }
LS_OP(signbit, Tensor(const Tensor&), "signbit(Tensor self) -> Tensor")
    .doc("True where the sign bit is set, of -0 too.")
    .structured(rules::predicate)
    .batching(batching::elementwise)
    .out()
    .not_differentiable("the result is a bool");
Tensor signbit(const Tensor& self) { return op_signbit(self); }

LS_OP(special_xlog1py, Tensor(const Tensor&, const Tensor&),
      "special_xlog1py(Tensor self, Tensor other) -> Tensor")
    .doc("self * log(1 + other), 0 where self is 0.")
    .structured(rules::xlog1py)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& other = ctx.saved(1);
      return ctx.gradients(
          [&] {
            const Tensor flat = logical_and(eq(self, 0), le(other, -1));
            return ctx.unbroadcast(masked_fill(special_xlog1py(grad, other), flat, 0), 0);
          },
          [&] { return ctx.unbroadcast(grad * self / (other + 1), 1); });
    });
Tensor special_xlog1py(const Tensor& self, const Tensor& other) {
  return op_special_xlog1py(self, other);
}
LS_OP(special_xlog1py_number, Tensor(const Tensor&, Scalar),
      "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor")
    .doc("self times log(1 + a number), 0 where self is 0.")
    .composite([](const Tensor& self, Scalar other) {
      return op_special_xlog1py(self, operand(other, self));
    });
LS_OP(special_xlog1py_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "special_xlog1py.other_scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("special_xlog1py, written into out.")
    .composite([](const Tensor& self, Scalar other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_special_xlog1py_number(self, other));
    });
LS_OP(special_xlog1py_of_number, Tensor(Scalar, const Tensor&),
      "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor")
    .doc("A number times log(1 + other), 0 where the number is 0.")
    .composite([](Scalar self, const Tensor& other) {
      return op_special_xlog1py(operand(self, other), other);
    });
LS_OP(special_xlog1py_of_number_out, const Tensor&(Scalar, const Tensor&, const Tensor&),
      "special_xlog1py.self_scalar_out(Scalar self, Tensor other, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("special_xlog1py, written into out.")
    .composite([](Scalar self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_special_xlog1py_of_number(self, other));
    });

LS_OP(special_zeta, Tensor(const Tensor&, const Tensor&),
      "special_zeta(Tensor self, Tensor other) -> Tensor")
    .doc("The Hurwitz zeta function: the sum over k >= 0 of (other + k)^-self.")
    .structured(rules::zeta)
    .batching(batching::elementwise)
    .out()
    .saves({"self", "other"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      return ctx.gradients(
          [&]() -> Tensor {
            throw Error(
                "[special_zeta] the derivative by self has no formula here: expected a self that "
                "requires no gradient. Detach it.");
          },
          [&] {
            return ctx.unbroadcast(grad * neg(self) * special_zeta(self + 1, ctx.saved(1)), 1);
          });
    });
Tensor special_zeta(const Tensor& self, const Tensor& other) {
  return op_special_zeta(self, other);
}
LS_OP(special_zeta_number, Tensor(const Tensor&, Scalar),
      "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor")
    .doc("special_zeta at a number other.")
    .composite([](const Tensor& self, Scalar other) {
      return op_special_zeta(self, operand(other, self));
    });
LS_OP(special_zeta_number_out, const Tensor&(const Tensor&, Scalar, const Tensor&),
      "special_zeta.other_scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("special_zeta, written into out.")
    .composite([](const Tensor& self, Scalar other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_special_zeta_number(self, other));
    });
LS_OP(special_zeta_of_number, Tensor(Scalar, const Tensor&),
      "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor")
    .doc("special_zeta of a number self.")
    .composite([](Scalar self, const Tensor& other) {
      return op_special_zeta(operand(self, other), other);
    });
LS_OP(special_zeta_of_number_out, const Tensor&(Scalar, const Tensor&, const Tensor&),
      "special_zeta.self_scalar_out(Scalar self, Tensor other, *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("special_zeta, written into out.")
    .composite([](Scalar self, const Tensor& other, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_special_zeta_of_number(self, other));
    });

}  // namespace lockstep
