#pragma once

#include <optional>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/conv/conv.cc, defined in core/ops/conv/conv_rules.cc.

Outputs convolution(const Tensor& input, const Tensor& weight, OptionalTensor bias, IntList stride,
                    IntList padding, IntList dilation, bool transposed, IntList output_padding,
                    int64_t groups);
Outputs convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                             std::optional<IntList> bias_sizes, IntList stride, IntList padding,
                             IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups, BoolList output_mask);

}  // namespace lockstep::rules
