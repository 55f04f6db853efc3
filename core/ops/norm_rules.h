#pragma once

#include <optional>

#include "core/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/norm.cc, defined in kernels/meta/norm.cc.

Outputs native_layer_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                          OptionalTensor bias, double eps);
Outputs native_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                   IntList normalized_shape, const Tensor& mean, const Tensor& rstd,
                                   OptionalTensor weight, OptionalTensor bias,
                                   BoolList output_mask);
Outputs fused_rms_norm(const Tensor& input, IntList normalized_shape, OptionalTensor weight,
                       std::optional<double> eps);
Outputs fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                IntList normalized_shape, const Tensor& rstd, OptionalTensor weight,
                                BoolList output_mask);

}  // namespace lockstep::rules
