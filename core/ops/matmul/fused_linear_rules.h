#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/matmul/fused_linear.cc, defined in core/ops/matmul/fused_linear_rules.cc.

Outputs linear_gelu(const Tensor& input, const Tensor& weight, OptionalTensor bias);
Outputs linear_add(const Tensor& residual, const Tensor& input, const Tensor& weight,
                   OptionalTensor bias);
Outputs linear_of_gelu(const Tensor& value, const Tensor& of, const Tensor& weight,
                       OptionalTensor bias, OptionalTensor residual);
Outputs linear_of_gelu_backward(const Tensor& grad_output, const Tensor& weight, const Tensor& of);

}  // namespace lockstep::rules
