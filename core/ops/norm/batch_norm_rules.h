#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/norm/batch_norm.cc, defined in core/ops/norm/batch_norm_rules.cc.

Outputs fused_batch_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                         OptionalTensor running_mean, OptionalTensor running_var, double momentum,
                         double eps);
Outputs batch_norm_no_training(const Tensor& input, OptionalTensor weight, OptionalTensor bias,
                               const Tensor& running_mean, const Tensor& running_var,
                               double momentum, double eps);
Outputs native_batch_norm_backward(const Tensor& grad_out, const Tensor& input,
                                   OptionalTensor weight, OptionalTensor running_mean,
                                   OptionalTensor running_var, OptionalTensor save_mean,
                                   OptionalTensor save_invstd, bool train, double eps,
                                   BoolList output_mask);

}  // namespace lockstep::rules
