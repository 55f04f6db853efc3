#pragma once

#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/pointwise*.cc, defined in core/ops/pointwise/pointwise_rules.cc. Kernels
// take arguments of mixed dtypes and compute in the result's, except where a rule says otherwise.

Outputs add(const Tensor& self, const Tensor& other, Scalar alpha);
Outputs sub(const Tensor& self, const Tensor& other, Scalar alpha);
Outputs add_number(const Tensor& self, Scalar other, Scalar alpha);
Outputs sub_number(const Tensor& self, Scalar other, Scalar alpha);
Outputs mul(const Tensor& self, const Tensor& other);
Outputs mul_number(const Tensor& self, Scalar other);
Outputs div(const Tensor& self, const Tensor& other);
Outputs div_number(const Tensor& self, Scalar other);
Outputs maximum(const Tensor& self, const Tensor& other);
Outputs minimum(const Tensor& self, const Tensor& other);
Outputs pow(const Tensor& self, Scalar exponent);

Outputs neg(const Tensor& self);
Outputs abs(const Tensor& self);
Outputs square(const Tensor& self);
Outputs sign(const Tensor& self);
Outputs relu(const Tensor& self);
/// Rule of exp, log, sqrt, tanh, ...: integers become float32.
Outputs floating_unary(const Tensor& self);
Outputs gelu(const Tensor& self, std::string_view approximate);
Outputs silu(const Tensor& self);

Outputs gelu_backward(const Tensor& grad, const Tensor& self, std::string_view approximate);
Outputs silu_backward(const Tensor& grad, const Tensor& self);
Outputs threshold_backward(const Tensor& grad, const Tensor& self, Scalar threshold);
Outputs tanh_backward(const Tensor& grad, const Tensor& output);
Outputs sigmoid_backward(const Tensor& grad, const Tensor& output);

Outputs eq(const Tensor& self, const Tensor& other);
Outputs ne(const Tensor& self, const Tensor& other);
Outputs lt(const Tensor& self, const Tensor& other);
Outputs le(const Tensor& self, const Tensor& other);
Outputs gt(const Tensor& self, const Tensor& other);
Outputs ge(const Tensor& self, const Tensor& other);
/// Rule of eq, ne, lt, le, gt and ge with a number.
Outputs number_comparison(const Tensor& self, Scalar other);
/// Rule of logical_not, isnan and isfinite.
Outputs predicate(const Tensor& self);
Outputs where(const Tensor& condition, const Tensor& self, const Tensor& other);
Outputs masked_fill(const Tensor& self, const Tensor& mask, Scalar value);

}  // namespace lockstep::rules
