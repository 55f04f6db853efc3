#include "core/ops/pointwise/pointwise_math_rules.h"

#include "core/base/check.h"
#include "core/ops/pointwise/pointwise_checks.h"
#include "core/ops/pointwise/pointwise_layout.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/pointwise/unary_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep::rules {

namespace {

constexpr std::string_view kCast = "Cast it with to(dtype).";

/// A dtype that is not bool, for operands that together must not be.
DType not_bool(std::string_view op, DType dtype) {
  LS_CHECK(dtype != DType::kBool, DTypeError,
           "[{}] bool operands are not accepted: expected numbers. {}", op, kCast);
  return dtype;
}
DType floating(std::string_view op, DType dtype, const Tensor& self, const Tensor& other) {
  LS_CHECK(is_floating(dtype), DTypeError,
           "[{}] expected a floating dtype among the operands, got {} and {}. Cast one with "
           "to(dtype).",
           op, to_string(self), to_string(other));
  return dtype;
}
DType integral(std::string_view op, DType dtype, bool bools) {
  LS_CHECK(is_integral(dtype) || (bools && dtype == DType::kBool), DTypeError,
           "[{}] expected integers{}, got operands of {}. Cast them with to(dtype).", op,
           bools ? " or bools" : "", to_string(dtype));
  return dtype;
}

/// `outputs` with 0-d integer operands cast to the result's dtype first, if that differs: with
/// ATen's promotion a 0-d operand does not widen the result.
Outputs narrowed(Outputs outputs, std::initializer_list<const Tensor*> operands) {
  const DType dtype = outputs.specs[0].dtype;
  if (is_floating(dtype)) return outputs;
  uint64_t mask = 0;
  uint64_t bit = 1;
  for (const Tensor* operand : operands) {
    if (operand->dim() == 0 && operand->dtype() != dtype) mask |= bit;
    bit <<= 1;
  }
  if (mask != 0) {
    outputs.compute = dtype;
    outputs.cast_mask = mask;
  }
  return outputs;
}
Outputs narrowed(std::string_view op, DType dtype, const Tensor& self, const Tensor& other) {
  return narrowed(pointwise_result(op, dtype, {&self, &other}), {&self, &other});
}

Outputs numbers(std::string_view op, const Tensor& self, const Tensor& other) {
  return narrowed(op, not_bool(op, result_type(self, other)), self, other);
}
Outputs logical(std::string_view op, const Tensor& self, const Tensor& other) {
  Outputs outputs = pointwise_result(op, DType::kBool, {&self, &other});
  if (self.dtype() != other.dtype()) outputs.compute = result_type(self, other);
  return outputs;
}
Outputs bits(std::string_view op, const Tensor& self, const Tensor& other, bool bools = true) {
  return narrowed(op, integral(op, result_type(self, other), bools), self, other);
}
Outputs bits(std::string_view op, const Tensor& self, const Scalar& other, bool bools = true) {
  return unary(integral(op, result_type(self, other), bools), self);
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
  if (min) check_holds(op, "min", dtype, *min);
  if (max) check_holds(op, "max", dtype, *max);
  return dtype;
}

void check_mode(std::optional<std::string_view> mode) {
  LS_CHECK(!mode || *mode == "trunc" || *mode == "floor", Error,
           "[div] unknown rounding mode: expected \"trunc\", \"floor\" or none, got \"{}\".",
           mode.value_or(""));
}
DType quotient(DType dtype, std::optional<std::string_view> mode) {
  check_mode(mode);
  return mode ? not_bool("div", dtype) : to_floating(dtype);
}

/// The common dtype of three operands.
DType common(const Tensor& a, const Tensor& b, const Tensor& c) {
  return Promotion().add(a).add(b).add(c).result();
}

void check_lerp(const Tensor& self, const Tensor& other, std::string_view name) {
  LS_CHECK(self.dtype() == other.dtype(), DTypeError,
           "[lerp] dtypes differ: expected {} of {}, got {}. Cast it with to(dtype).", name,
           to_string(self.dtype()), to_string(other));
}

}  // namespace

Outputs polygamma(int64_t n, const Tensor& self) {
  // The formula has n! in it, and adds some n terms.
  LS_CHECK(n >= 0 && n <= 170, Error,
           "[polygamma] expected an order from 0 to 170, whose factorial float64 holds, got {}.",
           n);
  return unary(to_floating(self.dtype()), self);
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
  return narrowed(
      pointwise_result("clamp", not_bool("clamp", common(self, *min, *max)), {&self, &*min, &*max}),
      {&self, &*min, &*max});
}
Outputs clamp_min_tensor(const Tensor& self, const Tensor& min) {
  return narrowed("clamp_min", result_type(self, min), self, min);
}
Outputs clamp_max_tensor(const Tensor& self, const Tensor& max) {
  return narrowed("clamp_max", result_type(self, max), self, max);
}

Outputs logical_and(const Tensor& self, const Tensor& other) {
  return logical("logical_and", self, other);
}
Outputs logical_or(const Tensor& self, const Tensor& other) {
  return logical("logical_or", self, other);
}
Outputs logical_xor(const Tensor& self, const Tensor& other) {
  return logical("logical_xor", self, other);
}
Outputs isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool) {
  LS_CHECK(self.dtype() == other.dtype(), DTypeError,
           "[isclose] dtypes differ: got {} and {}. Cast one with to(dtype).", to_string(self),
           to_string(other));
  LS_CHECK(rtol >= 0 && atol >= 0, Error,
           "[isclose] tolerances must not be negative: got rtol {} and atol {}.", rtol, atol);
  return pointwise_result("isclose", DType::kBool, {&self, &other});
}

Outputs bitwise_and(const Tensor& self, const Tensor& other) {
  return bits("bitwise_and", self, other);
}
Outputs bitwise_or(const Tensor& self, const Tensor& other) {
  return bits("bitwise_or", self, other);
}
Outputs bitwise_xor(const Tensor& self, const Tensor& other) {
  return bits("bitwise_xor", self, other);
}
Outputs bitwise_left_shift(const Tensor& self, const Tensor& other) {
  return bits("bitwise_left_shift", self, other, false);
}
Outputs bitwise_right_shift(const Tensor& self, const Tensor& other) {
  return bits("bitwise_right_shift", self, other, false);
}
Outputs bitwise_and_number(const Tensor& self, Scalar other) {
  return bits("bitwise_and", self, other);
}
Outputs bitwise_or_number(const Tensor& self, Scalar other) {
  return bits("bitwise_or", self, other);
}
Outputs bitwise_xor_number(const Tensor& self, Scalar other) {
  return bits("bitwise_xor", self, other);
}
Outputs bitwise_left_shift_number(const Tensor& self, Scalar other) {
  return bits("bitwise_left_shift", self, other, false);
}
Outputs bitwise_right_shift_number(const Tensor& self, Scalar other) {
  return bits("bitwise_right_shift", self, other, false);
}
Outputs bitwise_not(const Tensor& self) {
  return unary(integral("bitwise_not", self.dtype(), true), self);
}

Outputs div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  return narrowed("div", quotient(result_type(self, other), mode), self, other);
}
Outputs div_mode_number(const Tensor& self, Scalar other, std::optional<std::string_view> mode) {
  return unary(quotient(result_type(self, other), mode), self);
}
Outputs fmod(const Tensor& self, const Tensor& other) { return numbers("fmod", self, other); }
Outputs fmod_number(const Tensor& self, Scalar other) {
  return unary(not_bool("fmod", result_type(self, other)), self);
}
Outputs remainder(const Tensor& self, const Tensor& other) {
  return numbers("remainder", self, other);
}
Outputs remainder_number(const Tensor& self, Scalar other) {
  return unary(not_bool("remainder", result_type(self, other)), self);
}
Outputs remainder_of_number(Scalar self, const Tensor& other) {
  return unary(not_bool("remainder", result_type(other, self)), other);
}

Outputs rsub_number(const Tensor& self, Scalar other, Scalar alpha) {
  refuse_bool("rsub", self, "logical_not() inverts a mask.");
  const DType dtype = result_type(self, other);
  check_alpha("rsub", dtype, alpha);
  return unary(dtype, self);
}
Outputs addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  const DType dtype = not_bool("addcmul", common(self, tensor1, tensor2));
  check_holds("addcmul", "value", dtype, value);
  return pointwise_result("addcmul", dtype, {&self, &tensor1, &tensor2});
}
Outputs addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar) {
  LS_CHECK(is_floating(tensor1.dtype()) || is_floating(tensor2.dtype()), DTypeError,
           "[addcdiv] the quotient of two integers is not accepted: expected a floating dtype, got "
           "{} and {}. Cast one with to(dtype).",
           to_string(tensor1), to_string(tensor2));
  return pointwise_result("addcdiv", common(self, tensor1, tensor2), {&self, &tensor1, &tensor2});
}
Outputs lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end, "end");
  if (weight.dim() > 0) check_lerp(self, weight, "weight");
  const DType dtype = weight.dim() > 0 ? self.dtype() : common(self, end, weight);
  return pointwise_result("lerp", floating("lerp", dtype, self, weight), {&self, &end, &weight});
}
Outputs lerp_number(const Tensor& self, const Tensor& end, Scalar) {
  require_floating("lerp", self);
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

}  // namespace lockstep::rules
