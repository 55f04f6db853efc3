#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/pointwise_{special,round,logic,division,formula,piecewise}.cc, defined in
// core/ops/pointwise/pointwise_math_rules.cc and pointwise_piecewise.cc. Kernels take arguments of
// mixed dtypes and compute in the result's, except where a rule says otherwise.

Outputs polygamma(int64_t n, const Tensor& self);

Outputs floor(const Tensor& self);
Outputs ceil(const Tensor& self);
Outputs trunc(const Tensor& self);
Outputs round(const Tensor& self);
Outputs round_decimals(const Tensor& self, int64_t decimals);
Outputs frac(const Tensor& self);
Outputs positive(const Tensor& self);
Outputs nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                   std::optional<double> neginf);
Outputs clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Outputs clamp_tensors(const Tensor& self, OptionalTensor min, OptionalTensor max);
Outputs clamp_min(const Tensor& self, Scalar min);
Outputs clamp_max(const Tensor& self, Scalar max);
Outputs clamp_min_tensor(const Tensor& self, const Tensor& min);
Outputs clamp_max_tensor(const Tensor& self, const Tensor& max);

// Rules with bool results. Kernels get both operands in their common dtype.
Outputs logical_and(const Tensor& self, const Tensor& other);
Outputs logical_or(const Tensor& self, const Tensor& other);
Outputs logical_xor(const Tensor& self, const Tensor& other);
Outputs isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan);
Outputs bitwise_and(const Tensor& self, const Tensor& other);
Outputs bitwise_or(const Tensor& self, const Tensor& other);
Outputs bitwise_xor(const Tensor& self, const Tensor& other);
Outputs bitwise_left_shift(const Tensor& self, const Tensor& other);
Outputs bitwise_right_shift(const Tensor& self, const Tensor& other);
Outputs bitwise_and_number(const Tensor& self, Scalar other);
Outputs bitwise_or_number(const Tensor& self, Scalar other);
Outputs bitwise_xor_number(const Tensor& self, Scalar other);
Outputs bitwise_left_shift_number(const Tensor& self, Scalar other);
Outputs bitwise_right_shift_number(const Tensor& self, Scalar other);
Outputs bitwise_not(const Tensor& self);

Outputs div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode);
Outputs div_mode_number(const Tensor& self, Scalar other, std::optional<std::string_view> mode);
Outputs fmod(const Tensor& self, const Tensor& other);
Outputs fmod_number(const Tensor& self, Scalar other);
Outputs remainder(const Tensor& self, const Tensor& other);
Outputs remainder_number(const Tensor& self, Scalar other);
Outputs remainder_of_number(Scalar self, const Tensor& other);

Outputs rsub_number(const Tensor& self, Scalar other, Scalar alpha);
Outputs addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value);
Outputs addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, Scalar value);
Outputs lerp(const Tensor& self, const Tensor& end, const Tensor& weight);
Outputs lerp_number(const Tensor& self, const Tensor& end, Scalar weight);
Outputs hypot(const Tensor& self, const Tensor& other);
Outputs atan2(const Tensor& self, const Tensor& other);
Outputs logaddexp(const Tensor& self, const Tensor& other);
Outputs xlogy(const Tensor& self, const Tensor& other);
Outputs pow_tensors(const Tensor& self, const Tensor& exponent);
Outputs pow_of_number(Scalar self, const Tensor& exponent);

Outputs elu(const Tensor& self, Scalar alpha, Scalar scale, Scalar input_scale);
Outputs elu_backward(const Tensor& grad, Scalar alpha, Scalar scale, Scalar input_scale,
                     bool is_result, const Tensor& self_or_result);
Outputs celu(const Tensor& self, Scalar alpha);
Outputs leaky_relu(const Tensor& self, Scalar negative_slope);
Outputs prelu(const Tensor& self, const Tensor& weight);
Outputs prelu_kernel(const Tensor& self, const Tensor& weight);
Outputs hardtanh(const Tensor& self, Scalar min_val, Scalar max_val);
Outputs threshold(const Tensor& self, Scalar threshold, Scalar value);
Outputs hardshrink(const Tensor& self, Scalar lambd);
Outputs softshrink(const Tensor& self, Scalar lambd);
Outputs hardsigmoid(const Tensor& self);
Outputs hardswish(const Tensor& self);
Outputs softplus(const Tensor& self, Scalar beta, Scalar threshold);
Outputs log_sigmoid(const Tensor& self);
Outputs mish(const Tensor& self);
Outputs logit(const Tensor& self, std::optional<double> eps);

}  // namespace lockstep::rules
