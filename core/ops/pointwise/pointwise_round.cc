#include "core/ops/pointwise/pointwise_round.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/choice.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

/// A bound of integers may lie beyond their ends, where it bounds nothing. One that no element can
/// reach is refused.
void check_min(std::string_view op, DType dtype, const Scalar& min) {
  if (is_floating(dtype)) return check_holds(op, "min", dtype, min);
  LS_CHECK(min.to_int() <= largest_integer(dtype), DTypeError,
           "[{}] no {} reaches min: expected at most {}, got {}. Use a wider dtype.", op,
           to_string(dtype), largest_integer(dtype), to_string(min));
}
void check_max(std::string_view op, DType dtype, const Scalar& max) {
  if (is_floating(dtype)) return check_holds(op, "max", dtype, max);
  LS_CHECK(max.to_int() >= smallest_integer(dtype), DTypeError,
           "[{}] every {} is above max: expected at least {}, got {}. Use a wider dtype.", op,
           to_string(dtype), smallest_integer(dtype), to_string(max));
}

/// The dtype of a clamped self: the bounds' dtype counts only if they are floats and self is not.
DType clamped(std::string_view op, const Tensor& self, std::optional<Scalar> min,
              std::optional<Scalar> max) {
  LS_CHECK(min || max, Error, "[{}] min and max are both missing: expected one of them or both.",
           op);
  Promotion promotion;
  promotion.add(self);
  if (min) promotion.add(*min);
  if (max) promotion.add(*max);
  const DType dtype = is_floating(self.dtype()) ? self.dtype() : not_bool(op, promotion.result());
  if (min) check_min(op, dtype, *min);
  if (max) check_max(op, dtype, *max);
  return dtype;
}

Outputs floor(const Tensor& self) { return numeric("floor", self); }
Outputs ceil(const Tensor& self) { return numeric("ceil", self); }
Outputs trunc(const Tensor& self) { return numeric("trunc", self); }
Outputs round(const Tensor& self) { return numeric("round", self); }
Outputs round_decimals(const Tensor& self, int64_t decimals) {
  require_floating("round", self);
  const int64_t most = self.dtype() == DType::kF64 ? 308 : 38;
  LS_CHECK(
      decimals >= -most && decimals <= most, Error,
      "[round] the scale 10^decimals overflows: expected decimals from {} to {} for {}, got {}.",
      -most, most, to_string(self.dtype()), decimals);
  return unary(self.dtype(), self);
}
Outputs frac(const Tensor& self) {
  require_floating("frac", self);
  return unary(self.dtype(), self);
}
Outputs positive(const Tensor& self) { return numeric("positive", self); }
Outputs nan_to_num(const Tensor& self, std::optional<double>, std::optional<double>,
                   std::optional<double>) {
  return unary(self.dtype(), self);
}
Outputs clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  return unary(clamped("clamp", self, min, max), self);
}
Outputs clamp_min(const Tensor& self, Scalar min) {
  return unary(clamped("clamp_min", self, min, std::nullopt), self);
}
Outputs clamp_max(const Tensor& self, Scalar max) {
  return unary(clamped("clamp_max", self, std::nullopt, max), self);
}
Outputs clamp_tensors(const Tensor& self, OptionalTensor min, OptionalTensor max) {
  LS_CHECK(min || max, Error,
           "[clamp] min and max are both missing: expected one of them or both.");
  if (!max) return narrowed("clamp", result_type(self, *min), self, *min);
  if (!min) {
    Outputs outputs = narrowed("clamp", result_type(self, *max), self, *max);
    outputs.cast_mask = (outputs.cast_mask & 1) | (outputs.cast_mask & 2) << 1;  // min is absent
    return outputs;
  }
  return narrowed(pointwise_result("clamp", not_bool("clamp", common_dtype(self, *min, *max)),
                                   {&self, &*min, &*max}),
                  {&self, &*min, &*max});
}
Outputs clamp_min_tensor(const Tensor& self, const Tensor& min) {
  return narrowed("clamp_min", result_type(self, min), self, min);
}
Outputs clamp_max_tensor(const Tensor& self, const Tensor& max) {
  return narrowed("clamp_max", result_type(self, max), self, max);
}

}  // namespace
}  // namespace rules

namespace {

/// The gradient of a step function: zeros.
Gradients no_slope(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] { return zeros_like(grad); });
}

/// grad where `condition` holds, else 0.
Tensor grad_where(const Tensor& grad, const Tensor& condition) {
  return masked_fill(grad, logical_not(condition), 0);
}

/// Distributes the gradient of clamp with tensor bounds: all of it goes to max where min > max;
/// else to the bound that self exceeds; half each to self and the bound where they are equal; else
/// to self.
struct ClampChoice {
  Tensor crossed, below, above, at_min, at_max;

  ClampChoice(const Tensor& self, const Tensor& min, const Tensor& max)
      : crossed(gt(min, max)), below(lt(self, min)), above(gt(self, max)) {
    const Tensor equals_min = eq(self, min);
    const Tensor equals_max = eq(self, max);
    at_min = logical_and(equals_min, logical_not(equals_max));
    at_max = logical_and(equals_max, logical_not(equals_min));
  }
  Tensor for_self(const Tensor& grad) const {
    return share_of_choice(grad, logical_or(below, above), logical_or(at_min, at_max));
  }
  Tensor for_min(const Tensor& grad) const {
    const Tensor taken = logical_and(logical_or(below, at_min), logical_not(crossed));
    return share_of_choice(grad, logical_not(taken), at_min);
  }
  Tensor for_max(const Tensor& grad) const {
    const Tensor shared = logical_and(at_max, logical_not(crossed));
    const Tensor taken = logical_or(crossed, logical_or(above, at_max));
    return share_of_choice(grad, logical_not(taken), shared);
  }
};

/// Gradients of self and one bound, of which the larger (clamp_min) or smaller one is the result.
Gradients bounded_gradients(VjpContext& ctx, const Tensor& grad, const Tensor& self_lost,
                            const Tensor& bound_lost, const Tensor& equal, size_t bound) {
  Gradients result;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    const bool wanted = ctx.needs(i) && (i == 0 || i == bound);
    result.push_back(
        wanted ? ctx.unbroadcast(share_of_choice(grad, i == 0 ? self_lost : bound_lost, equal), i)
               : Tensor());
  }
  return result;
}
Gradients bounded_below(VjpContext& ctx, const Tensor& grad, const Tensor& self,
                        const Tensor& min) {
  return bounded_gradients(ctx, grad, lt(self, min), gt(self, min), eq(self, min), 1);
}
Gradients bounded_above(VjpContext& ctx, const Tensor& grad, const Tensor& self, const Tensor& max,
                        size_t bound) {
  return bounded_gradients(ctx, grad, gt(self, max), lt(self, max), eq(self, max), bound);
}

}  // namespace

LS_OP(floor, Tensor(const Tensor&), "floor(Tensor self) -> Tensor")
    .doc("The largest integer that is not above self.")
    .structured(rules::floor)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative(no_slope);
Tensor floor(const Tensor& self) { return op_floor(self); }

LS_OP(ceil, Tensor(const Tensor&), "ceil(Tensor self) -> Tensor")
    .doc("The smallest integer that is not below self.")
    .structured(rules::ceil)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative(no_slope);
Tensor ceil(const Tensor& self) { return op_ceil(self); }

LS_OP(trunc, Tensor(const Tensor&), "trunc(Tensor self) -> Tensor")
    .doc("The integer part of self, rounded towards 0.")
    .structured(rules::trunc)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative(no_slope);
Tensor trunc(const Tensor& self) { return op_trunc(self); }

LS_OP(round, Tensor(const Tensor&), "round(Tensor self) -> Tensor")
    .doc("The nearest integer; halves are rounded to even.")
    .structured(rules::round)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative(no_slope);
Tensor round(const Tensor& self) { return op_round(self); }

LS_OP(round_decimals, Tensor(const Tensor&, int64_t),
      "round.decimals(Tensor self, *, int decimals) -> Tensor")
    .doc("self rounded to a number of decimal places, which may be negative.")
    .structured(rules::round_decimals)
    .batching(batching::elementwise)
    .in_place()
    .out("decimals_out")
    .derivative(no_slope);
Tensor round(const Tensor& self, int64_t decimals) { return op_round_decimals(self, decimals); }

LS_OP(frac, Tensor(const Tensor&), "frac(Tensor self) -> Tensor")
    .doc("self - trunc(self).")
    .structured(rules::frac)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });
Tensor frac(const Tensor& self) { return op_frac(self); }

LS_OP(sgn, Tensor(const Tensor&), "sgn(Tensor self) -> Tensor")
    .doc("-1, 0 or 1: the same as sign for real numbers.")
    .composite([](const Tensor& self) { return sign(self); });
Tensor sgn(const Tensor& self) { return op_sgn(self); }

LS_OP(sgn_in_place, const Tensor&(const Tensor&), "sgn_(Tensor(a!) self) -> Tensor(a!)")
    .doc("sgn, written into self.")
    .composite([](const Tensor& self) -> const Tensor& { return copy_(self, sign(self)); });

LS_OP(sgn_out, const Tensor&(const Tensor&, const Tensor&),
      "sgn.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("sgn, written into out.")
    .composite([](const Tensor& self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_sgn(self));
    });

LS_OP(positive, Tensor(const Tensor&), "positive(Tensor(a) self) -> Tensor(a)")
    .doc("self.")
    .composite([](const Tensor& self) {
      rules::positive(self);
      return self;
    });
Tensor positive(const Tensor& self) { return op_positive(self); }

LS_OP(nan_to_num,
      Tensor(const Tensor&, std::optional<double>, std::optional<double>, std::optional<double>),
      "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
    .doc("NaN replaced by 0 and infinities by the largest finite numbers, unless others are given.")
    .structured(rules::nan_to_num)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad_where(grad, isfinite(ctx.saved(0))); });
    });
Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  return op_nan_to_num(self, nan, posinf, neginf);
}

LS_OP(clamp, Tensor(const Tensor&, std::optional<Scalar>, std::optional<Scalar>),
      "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
    .doc("self, but not below min and not above max; max where they cross.")
    .structured(rules::clamp)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const Tensor& self = ctx.saved(0);
        const auto min = ctx.argument<std::optional<Scalar>>(1);
        const auto max = ctx.argument<std::optional<Scalar>>(2);
        if (!max) return grad_where(grad, gt(self, *min));
        if (!min) return grad_where(grad, lt(self, *max));
        return grad_where(grad, logical_and(gt(self, *min), lt(self, *max)));
      });
    });
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  return op_clamp(self, min, max);
}
const Tensor& clamp_(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  return op_clamp.in_place(self, min, max);
}

LS_OP(clamp_tensors, Tensor(const Tensor&, OptionalTensor, OptionalTensor),
      "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
    .doc("self, but not below min and not above max, element by element; max where they cross.")
    .structured(rules::clamp_tensors)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self", "min", "max"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const Tensor& self = ctx.saved(0);
      const Tensor& min = ctx.saved(1);
      const Tensor& max = ctx.saved(2);
      if (!max.defined()) return bounded_below(ctx, grad, self, min);
      if (!min.defined()) return bounded_above(ctx, grad, self, max, 2);
      const ClampChoice choice(self, min, max);
      return ctx.gradients([&] { return ctx.unbroadcast(choice.for_self(grad), 0); },
                           [&] { return ctx.unbroadcast(choice.for_min(grad), 1); },
                           [&] { return ctx.unbroadcast(choice.for_max(grad), 2); });
    });
Tensor clamp(const Tensor& self, OptionalTensor min, OptionalTensor max) {
  return op_clamp_tensors(self, min, max);
}

LS_OP(clamp_min, Tensor(const Tensor&, Scalar), "clamp_min(Tensor self, Scalar min) -> Tensor")
    .doc("self, but not below a number.")
    .structured(rules::clamp_min)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad_where(grad, gt(ctx.saved(0), ctx.argument<Scalar>(1))); });
    });
Tensor clamp_min(const Tensor& self, const Scalar& min) { return op_clamp_min(self, min); }

LS_OP(clamp_min_tensor, Tensor(const Tensor&, const Tensor&),
      "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
    .doc("self, but not below min, element by element.")
    .structured(rules::clamp_min_tensor)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self", "min"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return bounded_below(ctx, grad, ctx.saved(0), ctx.saved(1));
    });
Tensor clamp_min(const Tensor& self, const Tensor& min) { return op_clamp_min_tensor(self, min); }

LS_OP(clamp_max, Tensor(const Tensor&, Scalar), "clamp_max(Tensor self, Scalar max) -> Tensor")
    .doc("self, but not above a number.")
    .structured(rules::clamp_max)
    .batching(batching::elementwise)
    .in_place()
    .out()
    .saves({"self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad_where(grad, lt(ctx.saved(0), ctx.argument<Scalar>(1))); });
    });
Tensor clamp_max(const Tensor& self, const Scalar& max) { return op_clamp_max(self, max); }

LS_OP(clamp_max_tensor, Tensor(const Tensor&, const Tensor&),
      "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
    .doc("self, but not above max, element by element.")
    .structured(rules::clamp_max_tensor)
    .batching(batching::elementwise)
    .in_place()
    .out("Tensor_out")
    .saves({"self", "max"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return bounded_above(ctx, grad, ctx.saved(0), ctx.saved(1), 1);
    });
Tensor clamp_max(const Tensor& self, const Tensor& max) { return op_clamp_max_tensor(self, max); }

}  // namespace lockstep
