#pragma once

#include <optional>

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/image/pool.cc, defined in core/ops/image/pool_rules.cc for two and three
// spatial dimensions.

template <int kSpatial>
Outputs avg_pool(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                 bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override);
template <int kSpatial>
Outputs avg_pool_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                          IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                          std::optional<int64_t> divisor_override);
template <int kSpatial>
Outputs max_pool(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                 IntList dilation, bool ceil_mode);
template <int kSpatial>
Outputs max_pool_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                          IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                          const Tensor& indices);
template <int kSpatial>
Outputs adaptive_avg_pool(const Tensor& self, IntList output_size);
template <int kSpatial>
Outputs adaptive_avg_pool_backward(const Tensor& grad_output, const Tensor& self);

}  // namespace lockstep::rules
