#include "core/ops/forms/pointwise.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& abs_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "abs.out">()(self, out);
}
const Tensor& abs_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "abs_">()(self);
}
const Tensor& acos_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "acos.out">()(self, out);
}
const Tensor& acos_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "acos_">()(self);
}
const Tensor& acosh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "acosh.out">()(self, out);
}
const Tensor& acosh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "acosh_">()(self);
}
const Tensor& add_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "add.Scalar_out">()(self, other, alpha, out);
}
const Tensor& addcdiv_out(const Tensor& out, const Tensor& self, const Tensor& tensor1,
                          const Tensor& tensor2, const Scalar& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, const Tensor&), "addcdiv.out">()(self, tensor1, tensor2, value, out);
}
const Tensor& addcmul_out(const Tensor& out, const Tensor& self, const Tensor& tensor1,
                          const Tensor& tensor2, const Scalar& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, Scalar, const Tensor&), "addcmul.out">()(self, tensor1, tensor2, value, out);
}
const Tensor& asin_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "asin.out">()(self, out);
}
const Tensor& asin_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "asin_">()(self);
}
const Tensor& asinh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "asinh.out">()(self, out);
}
const Tensor& asinh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "asinh_">()(self);
}
const Tensor& atan_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "atan.out">()(self, out);
}
const Tensor& atan2_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "atan2.out">()(self, other, out);
}
const Tensor& atan2_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "atan2_">()(self, other);
}
const Tensor& atan_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "atan_">()(self);
}
const Tensor& atanh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "atanh.out">()(self, out);
}
const Tensor& atanh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "atanh_">()(self);
}
const Tensor& bitwise_and_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "bitwise_and.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& bitwise_and_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "bitwise_and.Scalar_out">()(self, other, out);
}
const Tensor& bitwise_and_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "bitwise_and.Tensor_out">()(self, other, out);
}
const Tensor& bitwise_and_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_and_.Scalar">()(self, other);
}
const Tensor& bitwise_and_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_and_.Tensor">()(self, other);
}
const Tensor& bitwise_left_shift_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "bitwise_left_shift.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "bitwise_left_shift.Tensor_Scalar_out">()(self, other, out);
}
const Tensor& bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "bitwise_left_shift.Tensor_out">()(self, other, out);
}
const Tensor& bitwise_left_shift_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_left_shift_.Tensor">()(self, other);
}
const Tensor& bitwise_left_shift_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_left_shift_.Tensor_Scalar">()(self, other);
}
const Tensor& bitwise_not_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_not.out">()(self, out);
}
const Tensor& bitwise_not_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "bitwise_not_">()(self);
}
const Tensor& bitwise_or_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "bitwise_or.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& bitwise_or_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "bitwise_or.Scalar_out">()(self, other, out);
}
const Tensor& bitwise_or_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "bitwise_or.Tensor_out">()(self, other, out);
}
const Tensor& bitwise_or_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_or_.Scalar">()(self, other);
}
const Tensor& bitwise_or_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_or_.Tensor">()(self, other);
}
const Tensor& bitwise_right_shift_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "bitwise_right_shift.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "bitwise_right_shift.Tensor_Scalar_out">()(self, other, out);
}
const Tensor& bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "bitwise_right_shift.Tensor_out">()(self, other, out);
}
const Tensor& bitwise_right_shift_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_right_shift_.Tensor">()(self, other);
}
const Tensor& bitwise_right_shift_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_right_shift_.Tensor_Scalar">()(self, other);
}
const Tensor& bitwise_xor_out(const Tensor& out, const Scalar& self, const Tensor& other) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "bitwise_xor.Scalar_Tensor_out">()(self, other, out);
}
const Tensor& bitwise_xor_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "bitwise_xor.Scalar_out">()(self, other, out);
}
const Tensor& bitwise_xor_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "bitwise_xor.Tensor_out">()(self, other, out);
}
const Tensor& bitwise_xor_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "bitwise_xor_.Scalar">()(self, other);
}
const Tensor& bitwise_xor_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "bitwise_xor_.Tensor">()(self, other);
}
const Tensor& ceil_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "ceil.out">()(self, out);
}
const Tensor& ceil_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "ceil_">()(self);
}
const Tensor& celu_out(const Tensor& out, const Tensor& self, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "celu.out">()(self, alpha, out);
}
const Tensor& celu_(const Tensor& self, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, Scalar), "celu_">()(self, alpha);
}
const Tensor& clamp_out(const Tensor& out, const Tensor& self, OptionalTensor min,
                        OptionalTensor max) {
  return form<const Tensor&(const Tensor&, OptionalTensor, OptionalTensor, const Tensor&), "clamp.Tensor_out">()(self, min, max, out);
}
const Tensor& clamp_out(const Tensor& out, const Tensor& self, std::optional<Scalar> min,
                        std::optional<Scalar> max) {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, std::optional<Scalar>, const Tensor&), "clamp.out">()(self, min, max, out);
}
const Tensor& clamp_(const Tensor& self, OptionalTensor min, OptionalTensor max) {
  return form<const Tensor&(const Tensor&, OptionalTensor, OptionalTensor), "clamp_.Tensor">()(self, min, max);
}
const Tensor& clamp_max_out(const Tensor& out, const Tensor& self, const Tensor& max) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "clamp_max.Tensor_out">()(self, max, out);
}
const Tensor& clamp_max_out(const Tensor& out, const Tensor& self, const Scalar& max) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "clamp_max.out">()(self, max, out);
}
const Tensor& clamp_max_(const Tensor& self, const Scalar& max) {
  return form<const Tensor&(const Tensor&, Scalar), "clamp_max_">()(self, max);
}
const Tensor& clamp_max_(const Tensor& self, const Tensor& max) {
  return form<const Tensor&(const Tensor&, const Tensor&), "clamp_max_.Tensor">()(self, max);
}
const Tensor& clamp_min_out(const Tensor& out, const Tensor& self, const Tensor& min) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "clamp_min.Tensor_out">()(self, min, out);
}
const Tensor& clamp_min_out(const Tensor& out, const Tensor& self, const Scalar& min) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "clamp_min.out">()(self, min, out);
}
const Tensor& clamp_min_(const Tensor& self, const Scalar& min) {
  return form<const Tensor&(const Tensor&, Scalar), "clamp_min_">()(self, min);
}
const Tensor& clamp_min_(const Tensor& self, const Tensor& min) {
  return form<const Tensor&(const Tensor&, const Tensor&), "clamp_min_.Tensor">()(self, min);
}
Tensor copysign(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "copysign.Scalar">()(self, other);
}
const Tensor& copysign_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "copysign.Scalar_out">()(self, other, out);
}
const Tensor& copysign_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "copysign.out">()(self, other, out);
}
const Tensor& copysign_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "copysign_.Scalar">()(self, other);
}
const Tensor& copysign_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "copysign_.Tensor">()(self, other);
}
const Tensor& cos_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "cos.out">()(self, out);
}
const Tensor& cos_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "cos_">()(self);
}
const Tensor& cosh_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "cosh.out">()(self, out);
}
const Tensor& cosh_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "cosh_">()(self);
}
const Tensor& deg2rad_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "deg2rad.out">()(self, out);
}
const Tensor& deg2rad_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "deg2rad_">()(self);
}
const Tensor& digamma_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "digamma.out">()(self, out);
}
const Tensor& digamma_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "digamma_">()(self);
}
const Tensor& div_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      std::optional<std::string_view> rounding_mode) {
  return form<const Tensor&(const Tensor&, Scalar, std::optional<std::string_view>, const Tensor&), "div.Scalar_mode_out">()(self, other, rounding_mode, out);
}
const Tensor& div_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "div.Scalar_out">()(self, other, out);
}
const Tensor& div_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      std::optional<std::string_view> rounding_mode) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<std::string_view>, const Tensor&), "div.out_mode">()(self, other, rounding_mode, out);
}
const Tensor& div_(const Tensor& self, const Scalar& other,
                   std::optional<std::string_view> rounding_mode) {
  return form<const Tensor&(const Tensor&, Scalar, std::optional<std::string_view>), "div_.Scalar_mode">()(self, other, rounding_mode);
}
const Tensor& div_(const Tensor& self, const Tensor& other,
                   std::optional<std::string_view> rounding_mode) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<std::string_view>), "div_.Tensor_mode">()(self, other, rounding_mode);
}
const Tensor& elu_out(const Tensor& out, const Tensor& self, const Scalar& alpha,
                      const Scalar& scale, const Scalar& input_scale) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, Scalar, const Tensor&), "elu.out">()(self, alpha, scale, input_scale, out);
}
const Tensor& elu_(const Tensor& self, const Scalar& alpha, const Scalar& scale,
                   const Scalar& input_scale) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, Scalar), "elu_">()(self, alpha, scale, input_scale);
}
const Tensor& eq_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "eq.Scalar_out">()(self, other, out);
}
const Tensor& eq_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "eq.Tensor_out">()(self, other, out);
}
const Tensor& eq_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "eq_.Scalar">()(self, other);
}
const Tensor& eq_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "eq_.Tensor">()(self, other);
}
const Tensor& erf_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "erf.out">()(self, out);
}
const Tensor& erf_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "erf_">()(self);
}
const Tensor& erfc_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "erfc.out">()(self, out);
}
const Tensor& erfc_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "erfc_">()(self);
}
const Tensor& erfinv_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "erfinv.out">()(self, out);
}
const Tensor& erfinv_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "erfinv_">()(self);
}
const Tensor& exp_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "exp.out">()(self, out);
}
const Tensor& exp2_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "exp2.out">()(self, out);
}
const Tensor& exp2_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "exp2_">()(self);
}
const Tensor& exp_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "exp_">()(self);
}
const Tensor& expm1_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "expm1.out">()(self, out);
}
const Tensor& expm1_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "expm1_">()(self);
}
Tensor float_power(const Scalar& self, const Tensor& exponent) {
  return form<Tensor(Scalar, const Tensor&), "float_power.Scalar">()(self, exponent);
}
const Tensor& float_power_out(const Tensor& out, const Scalar& self, const Tensor& exponent) {
  return form<const Tensor&(Scalar, const Tensor&, const Tensor&), "float_power.Scalar_out">()(self, exponent, out);
}
Tensor float_power(const Tensor& self, const Scalar& exponent) {
  return form<Tensor(const Tensor&, Scalar), "float_power.Tensor_Scalar">()(self, exponent);
}
const Tensor& float_power_out(const Tensor& out, const Tensor& self, const Scalar& exponent) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "float_power.Tensor_Scalar_out">()(self, exponent, out);
}
const Tensor& float_power_out(const Tensor& out, const Tensor& self, const Tensor& exponent) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "float_power.Tensor_Tensor_out">()(self, exponent, out);
}
const Tensor& float_power_(const Tensor& self, const Scalar& exponent) {
  return form<const Tensor&(const Tensor&, Scalar), "float_power_.Scalar">()(self, exponent);
}
const Tensor& float_power_(const Tensor& self, const Tensor& exponent) {
  return form<const Tensor&(const Tensor&, const Tensor&), "float_power_.Tensor">()(self, exponent);
}
const Tensor& floor_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "floor.out">()(self, out);
}
const Tensor& floor_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "floor_">()(self);
}
Tensor floor_divide(const Tensor& self, const Scalar& other) {
  return form<Tensor(const Tensor&, Scalar), "floor_divide.Scalar">()(self, other);
}
const Tensor& floor_divide_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "floor_divide.Scalar_out">()(self, other, out);
}
const Tensor& floor_divide_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "floor_divide.out">()(self, other, out);
}
const Tensor& floor_divide_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "floor_divide_.Scalar">()(self, other);
}
const Tensor& floor_divide_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "floor_divide_.Tensor">()(self, other);
}
const Tensor& fmax_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "fmax.out">()(self, other, out);
}
const Tensor& fmin_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "fmin.out">()(self, other, out);
}
const Tensor& fmod_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "fmod.Scalar_out">()(self, other, out);
}
const Tensor& fmod_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "fmod.Tensor_out">()(self, other, out);
}
const Tensor& fmod_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "fmod_.Scalar">()(self, other);
}
const Tensor& fmod_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "fmod_.Tensor">()(self, other);
}
const Tensor& frac_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "frac.out">()(self, out);
}
const Tensor& frac_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "frac_">()(self);
}
const Tensor& gcd_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "gcd.out">()(self, other, out);
}
const Tensor& gcd_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "gcd_">()(self, other);
}
const Tensor& ge_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "ge.Scalar_out">()(self, other, out);
}
const Tensor& ge_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "ge.Tensor_out">()(self, other, out);
}
const Tensor& ge_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "ge_.Scalar">()(self, other);
}
const Tensor& ge_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "ge_.Tensor">()(self, other);
}
const Tensor& gelu_out(const Tensor& out, const Tensor& self, std::string_view approximate) {
  return form<const Tensor&(const Tensor&, std::string_view, const Tensor&), "gelu.out">()(self, approximate, out);
}
const Tensor& gelu_(const Tensor& self, std::string_view approximate) {
  return form<const Tensor&(const Tensor&, std::string_view), "gelu_">()(self, approximate);
}
const Tensor& glu_out(const Tensor& out, const Tensor& self, int64_t dim) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "glu.out">()(self, dim, out);
}
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim) {
  return form<Tensor(const Tensor&, const Tensor&, int64_t), "glu_backward">()(grad_output, self, dim);
}
const Tensor& gt_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "gt.Scalar_out">()(self, other, out);
}
const Tensor& gt_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "gt.Tensor_out">()(self, other, out);
}
const Tensor& gt_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "gt_.Scalar">()(self, other);
}
const Tensor& gt_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "gt_.Tensor">()(self, other);
}
const Tensor& hardshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "hardshrink.out">()(self, lambd, out);
}
const Tensor& hardsigmoid_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "hardsigmoid.out">()(self, out);
}
const Tensor& hardsigmoid_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "hardsigmoid_">()(self);
}
const Tensor& hardswish_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "hardswish.out">()(self, out);
}
const Tensor& hardswish_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "hardswish_">()(self);
}
const Tensor& hardtanh_out(const Tensor& out, const Tensor& self, const Scalar& min_val,
                           const Scalar& max_val) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar, const Tensor&), "hardtanh.out">()(self, min_val, max_val, out);
}
const Tensor& hardtanh_(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  return form<const Tensor&(const Tensor&, Scalar, Scalar), "hardtanh_">()(self, min_val, max_val);
}
const Tensor& heaviside_out(const Tensor& out, const Tensor& self, const Tensor& values) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "heaviside.out">()(self, values, out);
}
const Tensor& heaviside_(const Tensor& self, const Tensor& values) {
  return form<const Tensor&(const Tensor&, const Tensor&), "heaviside_">()(self, values);
}
const Tensor& hypot_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "hypot.out">()(self, other, out);
}
const Tensor& hypot_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "hypot_">()(self, other);
}
const Tensor& i0_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "i0.out">()(self, out);
}
const Tensor& i0_(const Tensor& self) { return form<const Tensor&(const Tensor&), "i0_">()(self); }
const Tensor& isinf_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "isinf.out">()(self, out);
}
const Tensor& isnan_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "isnan.out">()(self, out);
}
const Tensor& lcm_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "lcm.out">()(self, other, out);
}
const Tensor& lcm_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "lcm_">()(self, other);
}
const Tensor& ldexp_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "ldexp.out">()(self, other, out);
}
const Tensor& ldexp_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "ldexp_">()(self, other);
}
const Tensor& le_out(const Tensor& out, const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "le.Scalar_out">()(self, other, out);
}
const Tensor& le_out(const Tensor& out, const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "le.Tensor_out">()(self, other, out);
}
const Tensor& le_(const Tensor& self, const Scalar& other) {
  return form<const Tensor&(const Tensor&, Scalar), "le_.Scalar">()(self, other);
}
const Tensor& le_(const Tensor& self, const Tensor& other) {
  return form<const Tensor&(const Tensor&, const Tensor&), "le_.Tensor">()(self, other);
}
const Tensor& leaky_relu_out(const Tensor& out, const Tensor& self, const Scalar& negative_slope) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "leaky_relu.out">()(self, negative_slope, out);
}
const Tensor& leaky_relu_(const Tensor& self, const Scalar& negative_slope) {
  return form<const Tensor&(const Tensor&, Scalar), "leaky_relu_">()(self, negative_slope);
}
const Tensor& lerp_out(const Tensor& out, const Tensor& self, const Tensor& end,
                       const Scalar& weight) {
  return form<const Tensor&(const Tensor&, const Tensor&, Scalar, const Tensor&), "lerp.Scalar_out">()(self, end, weight, out);
}
const Tensor& lerp_out(const Tensor& out, const Tensor& self, const Tensor& end,
                       const Tensor& weight) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, const Tensor&), "lerp.Tensor_out">()(self, end, weight, out);
}
const Tensor& lerp_(const Tensor& self, const Tensor& end, const Tensor& weight) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "lerp_.Tensor">()(self, end, weight);
}
const Tensor& lgamma_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "lgamma.out">()(self, out);
}
const Tensor& lgamma_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "lgamma_">()(self);
}

}  // namespace lockstep
