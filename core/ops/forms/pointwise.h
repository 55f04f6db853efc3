#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& abs_out(const Tensor& out, const Tensor& self);
const Tensor& abs_(const Tensor& self);
const Tensor& acos_out(const Tensor& out, const Tensor& self);
const Tensor& acos_(const Tensor& self);
const Tensor& acosh_out(const Tensor& out, const Tensor& self);
const Tensor& acosh_(const Tensor& self);
const Tensor& add_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      const Scalar& alpha = 1);
const Tensor& addcdiv_out(const Tensor& out, const Tensor& self, const Tensor& tensor1,
                          const Tensor& tensor2, const Scalar& value = 1);
const Tensor& addcmul_out(const Tensor& out, const Tensor& self, const Tensor& tensor1,
                          const Tensor& tensor2, const Scalar& value = 1);
const Tensor& asin_out(const Tensor& out, const Tensor& self);
const Tensor& asin_(const Tensor& self);
const Tensor& asinh_out(const Tensor& out, const Tensor& self);
const Tensor& asinh_(const Tensor& self);
const Tensor& atan_out(const Tensor& out, const Tensor& self);
const Tensor& atan2_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& atan2_(const Tensor& self, const Tensor& other);
const Tensor& atan_(const Tensor& self);
const Tensor& atanh_out(const Tensor& out, const Tensor& self);
const Tensor& atanh_(const Tensor& self);
const Tensor& bitwise_and_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& bitwise_and_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& bitwise_and_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& bitwise_and_(const Tensor& self, const Scalar& other);
const Tensor& bitwise_and_(const Tensor& self, const Tensor& other);
const Tensor& bitwise_left_shift_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& bitwise_left_shift_(const Tensor& self, const Tensor& other);
const Tensor& bitwise_left_shift_(const Tensor& self, const Scalar& other);
const Tensor& bitwise_not_out(const Tensor& out, const Tensor& self);
const Tensor& bitwise_not_(const Tensor& self);
const Tensor& bitwise_or_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& bitwise_or_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& bitwise_or_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& bitwise_or_(const Tensor& self, const Scalar& other);
const Tensor& bitwise_or_(const Tensor& self, const Tensor& other);
const Tensor& bitwise_right_shift_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& bitwise_right_shift_(const Tensor& self, const Tensor& other);
const Tensor& bitwise_right_shift_(const Tensor& self, const Scalar& other);
const Tensor& bitwise_xor_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& bitwise_xor_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& bitwise_xor_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& bitwise_xor_(const Tensor& self, const Scalar& other);
const Tensor& bitwise_xor_(const Tensor& self, const Tensor& other);
const Tensor& ceil_out(const Tensor& out, const Tensor& self);
const Tensor& ceil_(const Tensor& self);
const Tensor& celu_out(const Tensor& out, const Tensor& self, const Scalar& alpha = 1.0);
const Tensor& celu_(const Tensor& self, const Scalar& alpha = 1.0);
const Tensor& clamp_out(const Tensor& out, const Tensor& self, OptionalTensor min = {},
                        OptionalTensor max = {});
const Tensor& clamp_out(const Tensor& out, const Tensor& self, std::optional<Scalar> min,
                        std::optional<Scalar> max = std::nullopt);
const Tensor& clamp_(const Tensor& self, OptionalTensor min = {}, OptionalTensor max = {});
const Tensor& clamp_max_out(const Tensor& out, const Tensor& self, const Tensor& max);
const Tensor& clamp_max_out(const Tensor& out, const Tensor& self, const Scalar& max);
const Tensor& clamp_max_(const Tensor& self, const Scalar& max);
const Tensor& clamp_max_(const Tensor& self, const Tensor& max);
const Tensor& clamp_min_out(const Tensor& out, const Tensor& self, const Tensor& min);
const Tensor& clamp_min_out(const Tensor& out, const Tensor& self, const Scalar& min);
const Tensor& clamp_min_(const Tensor& self, const Scalar& min);
const Tensor& clamp_min_(const Tensor& self, const Tensor& min);
Tensor copysign(const Tensor& self, const Scalar& other);
const Tensor& copysign_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& copysign_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& copysign_(const Tensor& self, const Scalar& other);
const Tensor& copysign_(const Tensor& self, const Tensor& other);
const Tensor& cos_out(const Tensor& out, const Tensor& self);
const Tensor& cos_(const Tensor& self);
const Tensor& cosh_out(const Tensor& out, const Tensor& self);
const Tensor& cosh_(const Tensor& self);
const Tensor& deg2rad_out(const Tensor& out, const Tensor& self);
const Tensor& deg2rad_(const Tensor& self);
const Tensor& digamma_out(const Tensor& out, const Tensor& self);
const Tensor& digamma_(const Tensor& self);
const Tensor& div_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      std::optional<std::string_view> rounding_mode);
const Tensor& div_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& div_out(const Tensor& out, const Tensor& self, const Tensor& other,
                      std::optional<std::string_view> rounding_mode);
const Tensor& div_(const Tensor& self, const Scalar& other,
                   std::optional<std::string_view> rounding_mode);
const Tensor& div_(const Tensor& self, const Tensor& other,
                   std::optional<std::string_view> rounding_mode);
const Tensor& elu_out(const Tensor& out, const Tensor& self, const Scalar& alpha = 1,
                      const Scalar& scale = 1, const Scalar& input_scale = 1);
const Tensor& elu_(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1,
                   const Scalar& input_scale = 1);
const Tensor& eq_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& eq_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& eq_(const Tensor& self, const Scalar& other);
const Tensor& eq_(const Tensor& self, const Tensor& other);
const Tensor& erf_out(const Tensor& out, const Tensor& self);
const Tensor& erf_(const Tensor& self);
const Tensor& erfc_out(const Tensor& out, const Tensor& self);
const Tensor& erfc_(const Tensor& self);
const Tensor& erfinv_out(const Tensor& out, const Tensor& self);
const Tensor& erfinv_(const Tensor& self);
const Tensor& exp_out(const Tensor& out, const Tensor& self);
const Tensor& exp2_out(const Tensor& out, const Tensor& self);
const Tensor& exp2_(const Tensor& self);
const Tensor& exp_(const Tensor& self);
const Tensor& expm1_out(const Tensor& out, const Tensor& self);
const Tensor& expm1_(const Tensor& self);
Tensor float_power(const Scalar& self, const Tensor& exponent);
const Tensor& float_power_out(const Tensor& out, const Scalar& self, const Tensor& exponent);
Tensor float_power(const Tensor& self, const Scalar& exponent);
const Tensor& float_power_out(const Tensor& out, const Tensor& self, const Scalar& exponent);
const Tensor& float_power_out(const Tensor& out, const Tensor& self, const Tensor& exponent);
const Tensor& float_power_(const Tensor& self, const Scalar& exponent);
const Tensor& float_power_(const Tensor& self, const Tensor& exponent);
const Tensor& floor_out(const Tensor& out, const Tensor& self);
const Tensor& floor_(const Tensor& self);
Tensor floor_divide(const Tensor& self, const Scalar& other);
const Tensor& floor_divide_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& floor_divide_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& floor_divide_(const Tensor& self, const Scalar& other);
const Tensor& floor_divide_(const Tensor& self, const Tensor& other);
const Tensor& fmax_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& fmin_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& fmod_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& fmod_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& fmod_(const Tensor& self, const Scalar& other);
const Tensor& fmod_(const Tensor& self, const Tensor& other);
const Tensor& frac_out(const Tensor& out, const Tensor& self);
const Tensor& frac_(const Tensor& self);
const Tensor& gcd_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& gcd_(const Tensor& self, const Tensor& other);
const Tensor& ge_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& ge_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& ge_(const Tensor& self, const Scalar& other);
const Tensor& ge_(const Tensor& self, const Tensor& other);
const Tensor& gelu_out(const Tensor& out, const Tensor& self,
                       std::string_view approximate = "none");
const Tensor& gelu_(const Tensor& self, std::string_view approximate = "none");
const Tensor& glu_out(const Tensor& out, const Tensor& self, int64_t dim = -1);
/// Gradient of glu's argument.
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim);
const Tensor& gt_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& gt_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& gt_(const Tensor& self, const Scalar& other);
const Tensor& gt_(const Tensor& self, const Tensor& other);
const Tensor& hardshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd = 0.5);
const Tensor& hardsigmoid_out(const Tensor& out, const Tensor& self);
const Tensor& hardsigmoid_(const Tensor& self);
const Tensor& hardswish_out(const Tensor& out, const Tensor& self);
const Tensor& hardswish_(const Tensor& self);
const Tensor& hardtanh_out(const Tensor& out, const Tensor& self, const Scalar& min_val = -1,
                           const Scalar& max_val = 1);
const Tensor& hardtanh_(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);
const Tensor& heaviside_out(const Tensor& out, const Tensor& self, const Tensor& values);
const Tensor& heaviside_(const Tensor& self, const Tensor& values);
const Tensor& hypot_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& hypot_(const Tensor& self, const Tensor& other);
const Tensor& i0_out(const Tensor& out, const Tensor& self);
const Tensor& i0_(const Tensor& self);
const Tensor& isinf_out(const Tensor& out, const Tensor& self);
const Tensor& isnan_out(const Tensor& out, const Tensor& self);
const Tensor& lcm_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& lcm_(const Tensor& self, const Tensor& other);
const Tensor& ldexp_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& ldexp_(const Tensor& self, const Tensor& other);
const Tensor& le_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& le_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& le_(const Tensor& self, const Scalar& other);
const Tensor& le_(const Tensor& self, const Tensor& other);
const Tensor& leaky_relu_out(const Tensor& out, const Tensor& self,
                             const Scalar& negative_slope = 0.01);
const Tensor& leaky_relu_(const Tensor& self, const Scalar& negative_slope = 0.01);
const Tensor& lerp_out(const Tensor& out, const Tensor& self, const Tensor& end,
                       const Scalar& weight);
const Tensor& lerp_out(const Tensor& out, const Tensor& self, const Tensor& end,
                       const Tensor& weight);
const Tensor& lerp_(const Tensor& self, const Tensor& end, const Tensor& weight);
const Tensor& lgamma_out(const Tensor& out, const Tensor& self);
const Tensor& lgamma_(const Tensor& self);
const Tensor& log_out(const Tensor& out, const Tensor& self);
const Tensor& log10_out(const Tensor& out, const Tensor& self);
const Tensor& log10_(const Tensor& self);
const Tensor& log1p_out(const Tensor& out, const Tensor& self);
const Tensor& log1p_(const Tensor& self);
const Tensor& log2_out(const Tensor& out, const Tensor& self);
const Tensor& log2_(const Tensor& self);
const Tensor& log_(const Tensor& self);
const Tensor& log_sigmoid_out(const Tensor& out, const Tensor& self);
const Tensor& logaddexp_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& logaddexp2_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& logical_and_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& logical_and_(const Tensor& self, const Tensor& other);
const Tensor& logical_not_out(const Tensor& out, const Tensor& self);
const Tensor& logical_not_(const Tensor& self);
const Tensor& logical_or_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& logical_or_(const Tensor& self, const Tensor& other);
const Tensor& logical_xor_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& logical_xor_(const Tensor& self, const Tensor& other);
const Tensor& logit_out(const Tensor& out, const Tensor& self,
                        std::optional<double> eps = std::nullopt);
const Tensor& logit_(const Tensor& self, std::optional<double> eps = std::nullopt);
const Tensor& lt_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& lt_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& lt_(const Tensor& self, const Scalar& other);
const Tensor& lt_(const Tensor& self, const Tensor& other);
const Tensor& masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                              const Scalar& value);
Tensor max(const Tensor& self, const Tensor& other);
const Tensor& max_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& maximum_out(const Tensor& out, const Tensor& self, const Tensor& other);
Tensor min(const Tensor& self, const Tensor& other);
const Tensor& min_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& minimum_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& mish_out(const Tensor& out, const Tensor& self);
const Tensor& mish_(const Tensor& self);
const Tensor& mul_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& nan_to_num_out(const Tensor& out, const Tensor& self,
                             std::optional<double> nan = std::nullopt,
                             std::optional<double> posinf = std::nullopt,
                             std::optional<double> neginf = std::nullopt);
const Tensor& nan_to_num_(const Tensor& self, std::optional<double> nan = std::nullopt,
                          std::optional<double> posinf = std::nullopt,
                          std::optional<double> neginf = std::nullopt);
const Tensor& ne_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& ne_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& ne_(const Tensor& self, const Scalar& other);
const Tensor& ne_(const Tensor& self, const Tensor& other);
const Tensor& neg_out(const Tensor& out, const Tensor& self);
const Tensor& neg_(const Tensor& self);
const Tensor& nextafter_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& nextafter_(const Tensor& self, const Tensor& other);
const Tensor& polygamma_out(const Tensor& out, int64_t n, const Tensor& self);
const Tensor& polygamma_(const Tensor& self, int64_t n);
const Tensor& pow_out(const Tensor& out, const Scalar& self, const Tensor& exponent);
const Tensor& pow_out(const Tensor& out, const Tensor& self, const Scalar& exponent);
const Tensor& pow_out(const Tensor& out, const Tensor& self, const Tensor& exponent);
const Tensor& pow_(const Tensor& self, const Tensor& exponent);
const Tensor& rad2deg_out(const Tensor& out, const Tensor& self);
const Tensor& rad2deg_(const Tensor& self);
const Tensor& reciprocal_out(const Tensor& out, const Tensor& self);
const Tensor& reciprocal_(const Tensor& self);
const Tensor& relu_out(const Tensor& out, const Tensor& self);
const Tensor& relu6_(const Tensor& self);
const Tensor& remainder_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& remainder_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& remainder_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& remainder_(const Tensor& self, const Scalar& other);
const Tensor& remainder_(const Tensor& self, const Tensor& other);
const Tensor& round_out(const Tensor& out, const Tensor& self, int64_t decimals);
const Tensor& round_out(const Tensor& out, const Tensor& self);
const Tensor& round_(const Tensor& self);
const Tensor& round_(const Tensor& self, int64_t decimals);
const Tensor& rsqrt_out(const Tensor& out, const Tensor& self);
const Tensor& rsqrt_(const Tensor& self);
const Tensor& rsub_out(const Tensor& out, const Tensor& self, const Scalar& other,
                       const Scalar& alpha = 1);
const Tensor& rsub_out(const Tensor& out, const Tensor& self, const Tensor& other,
                       const Scalar& alpha = 1);
const Tensor& selu_(const Tensor& self);
const Tensor& sgn_out(const Tensor& out, const Tensor& self);
const Tensor& sgn_(const Tensor& self);
const Tensor& sigmoid_out(const Tensor& out, const Tensor& self);
const Tensor& sigmoid_(const Tensor& self);
const Tensor& sign_out(const Tensor& out, const Tensor& self);
const Tensor& sign_(const Tensor& self);
const Tensor& signbit_out(const Tensor& out, const Tensor& self);
const Tensor& silu_out(const Tensor& out, const Tensor& self);
const Tensor& silu_(const Tensor& self);
const Tensor& sin_out(const Tensor& out, const Tensor& self);
const Tensor& sin_(const Tensor& self);
const Tensor& sinc_out(const Tensor& out, const Tensor& self);
const Tensor& sinc_(const Tensor& self);
const Tensor& sinh_out(const Tensor& out, const Tensor& self);
const Tensor& sinh_(const Tensor& self);
const Tensor& softplus_out(const Tensor& out, const Tensor& self, const Scalar& beta = 1,
                           const Scalar& threshold = 20);
const Tensor& softshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd = 0.5);
const Tensor& special_bessel_j0_out(const Tensor& out, const Tensor& self);
const Tensor& special_bessel_j1_out(const Tensor& out, const Tensor& self);
const Tensor& special_entr_out(const Tensor& out, const Tensor& self);
const Tensor& special_erfcx_out(const Tensor& out, const Tensor& self);
const Tensor& special_i0e_out(const Tensor& out, const Tensor& self);
const Tensor& special_i1_out(const Tensor& out, const Tensor& self);
const Tensor& special_i1e_out(const Tensor& out, const Tensor& self);
const Tensor& special_log_ndtr_out(const Tensor& out, const Tensor& self);
const Tensor& special_ndtr_out(const Tensor& out, const Tensor& self);
const Tensor& special_ndtri_out(const Tensor& out, const Tensor& self);
Tensor special_xlog1py(const Tensor& self, const Scalar& other);
const Tensor& special_xlog1py_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& special_xlog1py_out(const Tensor& out, const Tensor& self, const Tensor& other);
Tensor special_xlog1py(const Scalar& self, const Tensor& other);
const Tensor& special_xlog1py_out(const Tensor& out, const Scalar& self, const Tensor& other);
Tensor special_zeta(const Tensor& self, const Scalar& other);
const Tensor& special_zeta_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& special_zeta_out(const Tensor& out, const Tensor& self, const Tensor& other);
Tensor special_zeta(const Scalar& self, const Tensor& other);
const Tensor& special_zeta_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& sqrt_out(const Tensor& out, const Tensor& self);
const Tensor& sqrt_(const Tensor& self);
const Tensor& square_out(const Tensor& out, const Tensor& self);
const Tensor& square_(const Tensor& self);
const Tensor& sub_out(const Tensor& out, const Tensor& self, const Scalar& other,
                      const Scalar& alpha = 1);
const Tensor& swiglu_out(const Tensor& out, const Tensor& gate, const Tensor& up);
const Tensor& tan_out(const Tensor& out, const Tensor& self);
const Tensor& tan_(const Tensor& self);
const Tensor& tanh_out(const Tensor& out, const Tensor& self);
const Tensor& tanh_(const Tensor& self);
const Tensor& threshold_out(const Tensor& out, const Tensor& self, const Scalar& threshold,
                            const Scalar& value);
const Tensor& threshold_(const Tensor& self, const Scalar& threshold, const Scalar& value);
Tensor true_divide(const Tensor& self, const Scalar& other);
const Tensor& true_divide_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& true_divide_(const Tensor& self, const Scalar& other);
const Tensor& true_divide_(const Tensor& self, const Tensor& other);
const Tensor& trunc_out(const Tensor& out, const Tensor& self);
const Tensor& trunc_(const Tensor& self);
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
const Tensor& where_out(const Tensor& out, const Tensor& condition, const Tensor& self,
                        const Tensor& other);
const Tensor& xlogy_out(const Tensor& out, const Tensor& self, const Scalar& other);
const Tensor& xlogy_out(const Tensor& out, const Scalar& self, const Tensor& other);
const Tensor& xlogy_out(const Tensor& out, const Tensor& self, const Tensor& other);
Tensor xlogy(const Tensor& self, const Scalar& other);
Tensor xlogy(const Scalar& self, const Tensor& other);
const Tensor& xlogy_(const Tensor& self, const Scalar& other);
const Tensor& xlogy_(const Tensor& self, const Tensor& other);

}  // namespace lockstep
