#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Pooling: each window of self [batch, channels, spatial...] becomes one element. The batch may be
// missing. Lists hold one number per spatial dimension, or one for all; an empty stride is the
// kernel's size. A window begins at o * stride - padding for the o-th place of the result; padding
// is at most half the kernel. `ceil_mode` keeps windows that begin inside the padded input but end
// behind it. Results have their channels innermost where self has; means over three
// dimensions are row-major.

/// The mean of each window. It divides by `divisor_override` where given, else by the places of the
/// window inside the padded input (`count_include_pad`) or inside the input. Integers are divided
/// towards zero.
Tensor avg_pool1d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0}, bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0}, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = std::nullopt);
Tensor avg_pool3d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0, 0}, bool ceil_mode = false,
                  bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = std::nullopt);
/// Gradient of the input; of `self` shape and dtype are read.
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                           IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override);
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntList kernel_size,
                           IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override);

/// The largest element of each window, whose neighbours are `dilation` apart; NaN wins. The
/// gradient goes to the first of equals.
Tensor max_pool1d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0}, IntList dilation = {1}, bool ceil_mode = false);
Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0}, IntList dilation = {1, 1}, bool ceil_mode = false);
Tensor max_pool3d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0, 0}, IntList dilation = {1, 1, 1},
                  bool ceil_mode = false);
/// The same with the place of each, an int64 index into the flattened spatial dimensions.
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride = {}, IntList padding = {0, 0},
                                                   IntList dilation = {1, 1},
                                                   bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride = {}, IntList padding = {0, 0, 0},
                                                   IntList dilation = {1, 1, 1},
                                                   bool ceil_mode = false);
/// Gradient of the input; of `self` shape and dtype are read. Throws IndexError for indices that
/// lie outside.
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices);
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices);

/// The mean over windows that cut the input evenly into `output_size` places: the o-th of n reaches
/// from floor(o size / n) to ceil((o + 1) size / n).
Tensor adaptive_avg_pool1d(const Tensor& self, IntList output_size);
Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size);
Tensor adaptive_avg_pool3d(const Tensor& self, IntList output_size);
/// Gradient of the input; of `self` shape and dtype are read.
Tensor adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self);
Tensor adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self);

}  // namespace lockstep
