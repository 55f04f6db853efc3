// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::abs() const { return form<Tensor(const Tensor&), "abs">()(*this); }
const Tensor& Tensor::abs_() const { return form<const Tensor&(const Tensor&), "abs_">()(*this); }
Tensor Tensor::acos() const { return form<Tensor(const Tensor&), "acos">()(*this); }
const Tensor& Tensor::acos_() const { return form<const Tensor&(const Tensor&), "acos_">()(*this); }
Tensor Tensor::acosh() const { return form<Tensor(const Tensor&), "acosh">()(*this); }
const Tensor& Tensor::acosh_() const {
  return form<const Tensor&(const Tensor&), "acosh_">()(*this);
}
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "add.Scalar">()(*this, other, alpha);
}
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "add.Tensor">()(*this, other, alpha);
}
const Tensor& Tensor::add_(const Scalar& other, const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "add_.Scalar">()(*this, other, alpha);
}
const Tensor& Tensor::add_(const Tensor& other, const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar), "add_.Tensor">()(*this, other, alpha);
}
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar), "addcdiv">()(*this, tensor1, tensor2, value);
}
const Tensor& Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2,
                               const Scalar& value) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar), "addcdiv_">()(*this, tensor1, tensor2, value);
}
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, Scalar), "addcmul">()(*this, tensor1, tensor2, value);
}
const Tensor& Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2,
                               const Scalar& value) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar), "addcmul_">()(*this, tensor1, tensor2, value);
}
Tensor Tensor::asin() const { return form<Tensor(const Tensor&), "asin">()(*this); }
const Tensor& Tensor::asin_() const { return form<const Tensor&(const Tensor&), "asin_">()(*this); }
Tensor Tensor::asinh() const { return form<Tensor(const Tensor&), "asinh">()(*this); }
const Tensor& Tensor::asinh_() const {
  return form<const Tensor&(const Tensor&), "asinh_">()(*this);
}
Tensor Tensor::atan() const { return form<Tensor(const Tensor&), "atan">()(*this); }
Tensor Tensor::atan2(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "atan2">()(*this, other);
}
const Tensor& Tensor::atan2_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "atan2_">()(*this, other);
}
const Tensor& Tensor::atan_() const { return form<const Tensor&(const Tensor&), "atan_">()(*this); }
Tensor Tensor::atanh() const { return form<Tensor(const Tensor&), "atanh">()(*this); }
const Tensor& Tensor::atanh_() const {
  return form<const Tensor&(const Tensor&), "atanh_">()(*this);
}
Tensor Tensor::bitwise_and(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "bitwise_and.Scalar">()(*this, other);
}
Tensor Tensor::bitwise_and(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "bitwise_and.Tensor">()(*this, other);
}
const Tensor& Tensor::bitwise_and_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_and_.Scalar">()(*this, other);
}
const Tensor& Tensor::bitwise_and_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_and_.Tensor">()(*this, other);
}
Tensor Tensor::bitwise_left_shift(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "bitwise_left_shift.Tensor">()(*this, other);
}
Tensor Tensor::bitwise_left_shift(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "bitwise_left_shift.Tensor_Scalar">()(*this, other);
}
const Tensor& Tensor::bitwise_left_shift_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_left_shift_.Tensor">()(*this, other);
}
const Tensor& Tensor::bitwise_left_shift_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_left_shift_.Tensor_Scalar">()(*this, other);
}
Tensor Tensor::bitwise_not() const { return form<Tensor(const Tensor&), "bitwise_not">()(*this); }
const Tensor& Tensor::bitwise_not_() const {
  return form<const Tensor&(const Tensor&), "bitwise_not_">()(*this);
}
Tensor Tensor::bitwise_or(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "bitwise_or.Scalar">()(*this, other);
}
Tensor Tensor::bitwise_or(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "bitwise_or.Tensor">()(*this, other);
}
const Tensor& Tensor::bitwise_or_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_or_.Scalar">()(*this, other);
}
const Tensor& Tensor::bitwise_or_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_or_.Tensor">()(*this, other);
}
Tensor Tensor::bitwise_right_shift(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "bitwise_right_shift.Tensor">()(*this, other);
}
Tensor Tensor::bitwise_right_shift(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "bitwise_right_shift.Tensor_Scalar">()(*this, other);
}
const Tensor& Tensor::bitwise_right_shift_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_right_shift_.Tensor">()(*this, other);
}
const Tensor& Tensor::bitwise_right_shift_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_right_shift_.Tensor_Scalar">()(*this, other);
}
Tensor Tensor::bitwise_xor(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "bitwise_xor.Scalar">()(*this, other);
}
Tensor Tensor::bitwise_xor(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "bitwise_xor.Tensor">()(*this, other);
}
const Tensor& Tensor::bitwise_xor_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_xor_.Scalar">()(*this, other);
}
const Tensor& Tensor::bitwise_xor_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_xor_.Tensor">()(*this, other);
}
Tensor Tensor::ceil() const { return form<Tensor(const Tensor&), "ceil">()(*this); }
const Tensor& Tensor::ceil_() const { return form<const Tensor&(const Tensor&), "ceil_">()(*this); }
Tensor Tensor::celu(const Scalar& alpha) const {
  return form<Tensor(const Tensor&, Scalar), "celu">()(*this, alpha);
}
const Tensor& Tensor::celu_(const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, Scalar), "celu_">()(*this, alpha);
}
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return form<Tensor(const Tensor&, std::optional<Scalar>, std::optional<Scalar>), "clamp">()(*this, min, max);
}
Tensor Tensor::clamp(OptionalTensor min, OptionalTensor max) const {
  return form<Tensor(const Tensor&, OptionalTensor, OptionalTensor), "clamp.Tensor">()(*this, min, max);
}
const Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, std::optional<Scalar>), "clamp_">()(*this, min, max);
}
const Tensor& Tensor::clamp_(OptionalTensor min, OptionalTensor max) const {
  return form<const Tensor&(const Tensor&, OptionalTensor, OptionalTensor), "clamp_.Tensor">()(*this, min, max);
}
Tensor Tensor::clamp_max(const Scalar& max) const {
  return form<Tensor(const Tensor&, Scalar), "clamp_max">()(*this, max);
}
Tensor Tensor::clamp_max(const Tensor& max) const {
  return form<Tensor(const Tensor&, const Tensor&), "clamp_max.Tensor">()(*this, max);
}
const Tensor& Tensor::clamp_max_(const Scalar& max) const {
  return form<const Tensor&(const Tensor&, Scalar), "clamp_max_">()(*this, max);
}
const Tensor& Tensor::clamp_max_(const Tensor& max) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "clamp_max_.Tensor">()(*this, max);
}
Tensor Tensor::clamp_min(const Scalar& min) const {
  return form<Tensor(const Tensor&, Scalar), "clamp_min">()(*this, min);
}
Tensor Tensor::clamp_min(const Tensor& min) const {
  return form<Tensor(const Tensor&, const Tensor&), "clamp_min.Tensor">()(*this, min);
}
const Tensor& Tensor::clamp_min_(const Scalar& min) const {
  return form<const Tensor&(const Tensor&, Scalar), "clamp_min_">()(*this, min);
}
const Tensor& Tensor::clamp_min_(const Tensor& min) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "clamp_min_.Tensor">()(*this, min);
}
Tensor Tensor::copysign(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "copysign.Scalar">()(*this, other);
}
Tensor Tensor::copysign(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "copysign.Tensor">()(*this, other);
}
const Tensor& Tensor::copysign_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "copysign_.Scalar">()(*this, other);
}
const Tensor& Tensor::copysign_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "copysign_.Tensor">()(*this, other);
}
Tensor Tensor::cos() const { return form<Tensor(const Tensor&), "cos">()(*this); }
const Tensor& Tensor::cos_() const { return form<const Tensor&(const Tensor&), "cos_">()(*this); }
Tensor Tensor::cosh() const { return form<Tensor(const Tensor&), "cosh">()(*this); }
const Tensor& Tensor::cosh_() const { return form<const Tensor&(const Tensor&), "cosh_">()(*this); }
Tensor Tensor::deg2rad() const { return form<Tensor(const Tensor&), "deg2rad">()(*this); }
const Tensor& Tensor::deg2rad_() const {
  return form<const Tensor&(const Tensor&), "deg2rad_">()(*this);
}
Tensor Tensor::digamma() const { return form<Tensor(const Tensor&), "digamma">()(*this); }
const Tensor& Tensor::digamma_() const {
  return form<const Tensor&(const Tensor&), "digamma_">()(*this);
}
Tensor Tensor::div(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "div.Scalar">()(*this, other);
}
Tensor Tensor::div(const Scalar& other, std::optional<std::string_view> rounding_mode) const {
  return form<Tensor(const Tensor&, Scalar, std::optional<std::string_view>), "div.Scalar_mode">()(*this, other, rounding_mode);
}
Tensor Tensor::div(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "div.Tensor">()(*this, other);
}
Tensor Tensor::div(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<std::string_view>), "div.Tensor_mode">()(*this, other, rounding_mode);
}
const Tensor& Tensor::div_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "div_.Scalar">()(*this, other);
}
const Tensor& Tensor::div_(const Scalar& other,
                           std::optional<std::string_view> rounding_mode) const {
  return form<const Tensor&(const Tensor&, Scalar, std::optional<std::string_view>), "div_.Scalar_mode">()(*this, other, rounding_mode);
}
const Tensor& Tensor::div_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "div_.Tensor">()(*this, other);
}
const Tensor& Tensor::div_(const Tensor& other,
                           std::optional<std::string_view> rounding_mode) const {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<std::string_view>), "div_.Tensor_mode">()(*this, other, rounding_mode);
}
Tensor Tensor::elu(const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) const {
  return form<Tensor(const Tensor&, Scalar, Scalar, Scalar), "elu">()(*this, alpha, scale, input_scale);
}
const Tensor& Tensor::elu_(const Scalar& alpha, const Scalar& scale,
                           const Scalar& input_scale) const {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, Scalar), "elu_">()(*this, alpha, scale, input_scale);
}
Tensor Tensor::eq(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "eq.Scalar">()(*this, other);
}
Tensor Tensor::eq(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "eq.Tensor">()(*this, other);
}
const Tensor& Tensor::eq_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "eq_.Scalar">()(*this, other);
}
const Tensor& Tensor::eq_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "eq_.Tensor">()(*this, other);
}
Tensor Tensor::erf() const { return form<Tensor(const Tensor&), "erf">()(*this); }
const Tensor& Tensor::erf_() const { return form<const Tensor&(const Tensor&), "erf_">()(*this); }
Tensor Tensor::erfc() const { return form<Tensor(const Tensor&), "erfc">()(*this); }
const Tensor& Tensor::erfc_() const { return form<const Tensor&(const Tensor&), "erfc_">()(*this); }
Tensor Tensor::erfinv() const { return form<Tensor(const Tensor&), "erfinv">()(*this); }
const Tensor& Tensor::erfinv_() const {
  return form<const Tensor&(const Tensor&), "erfinv_">()(*this);
}
Tensor Tensor::exp() const { return form<Tensor(const Tensor&), "exp">()(*this); }
Tensor Tensor::exp2() const { return form<Tensor(const Tensor&), "exp2">()(*this); }
const Tensor& Tensor::exp2_() const { return form<const Tensor&(const Tensor&), "exp2_">()(*this); }
const Tensor& Tensor::exp_() const { return form<const Tensor&(const Tensor&), "exp_">()(*this); }
Tensor Tensor::expm1() const { return form<Tensor(const Tensor&), "expm1">()(*this); }
const Tensor& Tensor::expm1_() const {
  return form<const Tensor&(const Tensor&), "expm1_">()(*this);
}
Tensor Tensor::float_power(const Scalar& exponent) const {
  return form<Tensor(const Tensor&, Scalar), "float_power.Tensor_Scalar">()(*this, exponent);
}
Tensor Tensor::float_power(const Tensor& exponent) const {
  return form<Tensor(const Tensor&, const Tensor&), "float_power.Tensor_Tensor">()(*this, exponent);
}
const Tensor& Tensor::float_power_(const Scalar& exponent) const {
  return form<const Tensor&(const Tensor&, Scalar), "float_power_.Scalar">()(*this, exponent);
}
const Tensor& Tensor::float_power_(const Tensor& exponent) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "float_power_.Tensor">()(*this, exponent);
}
Tensor Tensor::floor() const { return form<Tensor(const Tensor&), "floor">()(*this); }
const Tensor& Tensor::floor_() const {
  return form<const Tensor&(const Tensor&), "floor_">()(*this);
}
Tensor Tensor::floor_divide(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "floor_divide">()(*this, other);
}
Tensor Tensor::floor_divide(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "floor_divide.Scalar">()(*this, other);
}
const Tensor& Tensor::floor_divide_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "floor_divide_.Scalar">()(*this, other);
}
const Tensor& Tensor::floor_divide_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "floor_divide_.Tensor">()(*this, other);
}
Tensor Tensor::fmax(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "fmax">()(*this, other);
}
Tensor Tensor::fmin(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "fmin">()(*this, other);
}
Tensor Tensor::fmod(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "fmod.Scalar">()(*this, other);
}
Tensor Tensor::fmod(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "fmod.Tensor">()(*this, other);
}
const Tensor& Tensor::fmod_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "fmod_.Scalar">()(*this, other);
}
const Tensor& Tensor::fmod_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "fmod_.Tensor">()(*this, other);
}
Tensor Tensor::frac() const { return form<Tensor(const Tensor&), "frac">()(*this); }
const Tensor& Tensor::frac_() const { return form<const Tensor&(const Tensor&), "frac_">()(*this); }
Tensor Tensor::gcd(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "gcd">()(*this, other);
}
const Tensor& Tensor::gcd_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "gcd_">()(*this, other);
}
Tensor Tensor::ge(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "ge.Scalar">()(*this, other);
}
Tensor Tensor::ge(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "ge.Tensor">()(*this, other);
}
const Tensor& Tensor::ge_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "ge_.Scalar">()(*this, other);
}
const Tensor& Tensor::ge_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "ge_.Tensor">()(*this, other);
}
Tensor Tensor::gelu(std::string_view approximate) const {
  return form<Tensor(const Tensor&, std::string_view), "gelu">()(*this, approximate);
}
const Tensor& Tensor::gelu_(std::string_view approximate) const {
  return form<const Tensor&(const Tensor&, std::string_view), "gelu_">()(*this, approximate);
}
Tensor Tensor::glu(int64_t dim) const {
  return form<Tensor(const Tensor&, int64_t), "glu">()(*this, dim);
}
Tensor Tensor::gt(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "gt.Scalar">()(*this, other);
}
Tensor Tensor::gt(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "gt.Tensor">()(*this, other);
}
const Tensor& Tensor::gt_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "gt_.Scalar">()(*this, other);
}
const Tensor& Tensor::gt_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "gt_.Tensor">()(*this, other);
}
Tensor Tensor::hardshrink(const Scalar& lambd) const {
  return form<Tensor(const Tensor&, Scalar), "hardshrink">()(*this, lambd);
}
Tensor Tensor::hardsigmoid() const { return form<Tensor(const Tensor&), "hardsigmoid">()(*this); }
const Tensor& Tensor::hardsigmoid_() const {
  return form<const Tensor&(const Tensor&), "hardsigmoid_">()(*this);
}
Tensor Tensor::hardswish() const { return form<Tensor(const Tensor&), "hardswish">()(*this); }
const Tensor& Tensor::hardswish_() const {
  return form<const Tensor&(const Tensor&), "hardswish_">()(*this);
}
Tensor Tensor::hardtanh(const Scalar& min_val, const Scalar& max_val) const {
  return form<Tensor(const Tensor&, Scalar, Scalar), "hardtanh">()(*this, min_val, max_val);
}
const Tensor& Tensor::hardtanh_(const Scalar& min_val, const Scalar& max_val) const {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "hardtanh_">()(*this, min_val, max_val);
}
Tensor Tensor::heaviside(const Tensor& values) const {
  return form<Tensor(const Tensor&, const Tensor&), "heaviside">()(*this, values);
}
const Tensor& Tensor::heaviside_(const Tensor& values) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "heaviside_">()(*this, values);
}
Tensor Tensor::hypot(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "hypot">()(*this, other);
}
const Tensor& Tensor::hypot_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "hypot_">()(*this, other);
}
Tensor Tensor::i0() const { return form<Tensor(const Tensor&), "i0">()(*this); }
const Tensor& Tensor::i0_() const { return form<const Tensor&(const Tensor&), "i0_">()(*this); }
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return form<Tensor(const Tensor&, const Tensor&, double, double, bool), "isclose">()(*this, other, rtol, atol, equal_nan);
}
Tensor Tensor::isfinite() const { return form<Tensor(const Tensor&), "isfinite">()(*this); }
Tensor Tensor::isinf() const { return form<Tensor(const Tensor&), "isinf">()(*this); }
Tensor Tensor::isnan() const { return form<Tensor(const Tensor&), "isnan">()(*this); }
Tensor Tensor::lcm(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "lcm">()(*this, other);
}
const Tensor& Tensor::lcm_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "lcm_">()(*this, other);
}
Tensor Tensor::ldexp(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "ldexp.Tensor">()(*this, other);
}
const Tensor& Tensor::ldexp_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "ldexp_">()(*this, other);
}
Tensor Tensor::le(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "le.Scalar">()(*this, other);
}
Tensor Tensor::le(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "le.Tensor">()(*this, other);
}
const Tensor& Tensor::le_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "le_.Scalar">()(*this, other);
}
const Tensor& Tensor::le_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "le_.Tensor">()(*this, other);
}
Tensor Tensor::leaky_relu(const Scalar& negative_slope) const {
  return form<Tensor(const Tensor&, Scalar), "leaky_relu">()(*this, negative_slope);
}
const Tensor& Tensor::leaky_relu_(const Scalar& negative_slope) const {
  return form<const Tensor&(const Tensor&, Scalar), "leaky_relu_">()(*this, negative_slope);
}
Tensor Tensor::lerp(const Tensor& end, const Scalar& weight) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "lerp.Scalar">()(*this, end, weight);
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&), "lerp.Tensor">()(*this, end, weight);
}
const Tensor& Tensor::lerp_(const Tensor& end, const Scalar& weight) const {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar), "lerp_.Scalar">()(*this, end, weight);
}
const Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "lerp_.Tensor">()(*this, end, weight);
}
Tensor Tensor::lgamma() const { return form<Tensor(const Tensor&), "lgamma">()(*this); }
const Tensor& Tensor::lgamma_() const {
  return form<const Tensor&(const Tensor&), "lgamma_">()(*this);
}
Tensor Tensor::log() const { return form<Tensor(const Tensor&), "log">()(*this); }
Tensor Tensor::log10() const { return form<Tensor(const Tensor&), "log10">()(*this); }
const Tensor& Tensor::log10_() const {
  return form<const Tensor&(const Tensor&), "log10_">()(*this);
}
Tensor Tensor::log1p() const { return form<Tensor(const Tensor&), "log1p">()(*this); }
const Tensor& Tensor::log1p_() const {
  return form<const Tensor&(const Tensor&), "log1p_">()(*this);
}
Tensor Tensor::log2() const { return form<Tensor(const Tensor&), "log2">()(*this); }
const Tensor& Tensor::log2_() const { return form<const Tensor&(const Tensor&), "log2_">()(*this); }
const Tensor& Tensor::log_() const { return form<const Tensor&(const Tensor&), "log_">()(*this); }
Tensor Tensor::log_sigmoid() const { return form<Tensor(const Tensor&), "log_sigmoid">()(*this); }
Tensor Tensor::logaddexp(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "logaddexp">()(*this, other);
}
Tensor Tensor::logaddexp2(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "logaddexp2">()(*this, other);
}
Tensor Tensor::logical_and(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "logical_and">()(*this, other);
}
const Tensor& Tensor::logical_and_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_and_">()(*this, other);
}
Tensor Tensor::logical_not() const { return form<Tensor(const Tensor&), "logical_not">()(*this); }
const Tensor& Tensor::logical_not_() const {
  return form<const Tensor&(const Tensor&), "logical_not_">()(*this);
}
Tensor Tensor::logical_or(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "logical_or">()(*this, other);
}
const Tensor& Tensor::logical_or_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_or_">()(*this, other);
}
Tensor Tensor::logical_xor(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "logical_xor">()(*this, other);
}
const Tensor& Tensor::logical_xor_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "logical_xor_">()(*this, other);
}
Tensor Tensor::logit(std::optional<double> eps) const {
  return form<Tensor(const Tensor&, std::optional<double>), "logit">()(*this, eps);
}
const Tensor& Tensor::logit_(std::optional<double> eps) const {
  return form<const Tensor&(const Tensor&, std::optional<double>), "logit_">()(*this, eps);
}
Tensor Tensor::lt(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "lt.Scalar">()(*this, other);
}
Tensor Tensor::lt(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "lt.Tensor">()(*this, other);
}
const Tensor& Tensor::lt_(const Scalar& other) const {
  return form<const Tensor&(const Tensor&, Scalar), "lt_.Scalar">()(*this, other);
}
const Tensor& Tensor::lt_(const Tensor& other) const {
  return form<const Tensor&(const Tensor&, const Tensor&), "lt_.Tensor">()(*this, other);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const {
  return form<Tensor(const Tensor&, const Tensor&, Scalar), "masked_fill.Scalar">()(*this, mask, value);
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar), "masked_fill_.Scalar">()(*this, mask, value);
}
Tensor Tensor::max(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "max.other">()(*this, other);
}
Tensor Tensor::maximum(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "maximum">()(*this, other);
}
Tensor Tensor::min(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "min.other">()(*this, other);
}
Tensor Tensor::minimum(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "minimum">()(*this, other);
}
Tensor Tensor::mish() const { return form<Tensor(const Tensor&), "mish">()(*this); }
const Tensor& Tensor::mish_() const { return form<const Tensor&(const Tensor&), "mish_">()(*this); }
Tensor Tensor::mul(const Scalar& other) const {
  return form<Tensor(const Tensor&, Scalar), "mul.Scalar">()(*this, other);
}
Tensor Tensor::mul(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "mul.Tensor">()(*this, other);
}

}  // namespace lockstep
