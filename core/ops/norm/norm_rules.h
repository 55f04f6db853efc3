#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/norm/norm.cc and group_norm.cc, defined there, and the checks that
// stream_norm.cc shares with them.

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

/// Checks what layer norm and RMS norm share: the input is floating and ends in `shape`, the
/// parameters' shape. Returns the shape of the statistics.
Dims norm_statistics_shape(std::string_view op, const Tensor& input, IntList shape,
                           OptionalTensor weight, OptionalTensor bias);
/// Checks that the gradient of a norm's result has the input's shape.
void check_norm_gradient(std::string_view op, const Tensor& grad_out, const Tensor& input);

Outputs fused_group_norm(const Tensor& input, OptionalTensor weight, OptionalTensor bias, int64_t n,
                         int64_t channels, int64_t positions, int64_t groups, double eps);
Outputs native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                                   const Tensor& rstd, OptionalTensor weight, int64_t n,
                                   int64_t channels, int64_t positions, int64_t groups,
                                   BoolList output_mask);

}  // namespace lockstep::rules
