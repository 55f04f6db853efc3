#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Pooling: each window of self [batch, channels, spatial...] becomes one element. The batch
// dimension is optional. Lists hold one number per spatial dimension, or one for all; an empty
// stride means the kernel's size. The window of result element o begins at o * stride - padding;
// padding is at most half the kernel. `ceil_mode` keeps windows that begin inside the padded input
// but end past it. Results are channels-last where self is, except averages over three dimensions,
// which are row-major.

/// The mean of each window: the sum divided by `divisor_override` if given, else by the number of
/// elements of the window inside the padded input (`count_include_pad`) or inside the input.
/// Integer division rounds towards zero.
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

/// The largest element of each window of elements `dilation` apart; NaN if there is one. The
/// gradient goes to the first of equal elements.
Tensor max_pool1d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0}, IntList dilation = {1}, bool ceil_mode = false);
Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0}, IntList dilation = {1, 1}, bool ceil_mode = false);
Tensor max_pool3d(const Tensor& self, IntList kernel_size, IntList stride = {},
                  IntList padding = {0, 0, 0}, IntList dilation = {1, 1, 1},
                  bool ceil_mode = false);
/// Max pooling that also returns the position of each maximum: an int64 index into the flattened
/// spatial dimensions.
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride = {}, IntList padding = {0, 0},
                                                   IntList dilation = {1, 1},
                                                   bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride = {}, IntList padding = {0, 0, 0},
                                                   IntList dilation = {1, 1, 1},
                                                   bool ceil_mode = false);
/// Gradient of the input; only the shape and dtype of `self` are read. Throws IndexError for an
/// index out of range.
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices);
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        IntList kernel_size, IntList stride, IntList padding,
                                        IntList dilation, bool ceil_mode, const Tensor& indices);

/// The mean over windows that divide the input evenly into `output_size` parts: the o-th of n
/// extends from floor(o size / n) to ceil((o + 1) size / n).
Tensor adaptive_avg_pool1d(const Tensor& self, IntList output_size);
Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size);
Tensor adaptive_avg_pool3d(const Tensor& self, IntList output_size);
/// Gradient of the input; of `self` shape and dtype are read.
Tensor adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self);
Tensor adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self);

/// The largest element of each of these windows, and its position as max_pool2d_with_indices gives
/// it.
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntList output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntList output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, IntList output_size);

/// Max pooling of windows of `kernel_size` that begin at pseudo-random distances, so that there are
/// `output_size` of them and the last ends at the border (Graham 2015). `random_samples` [batch,
/// channels, 2] holds numbers in [0, 1) of self's dtype, for width and height of each plane.
std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntList kernel_size,
                                                 IntList output_size, const Tensor& random_samples);

/// Zeros [..., output_size] with the elements of self at `indices`, positions in the flattened
/// spatial dimensions of the result: the inverse of max pooling. Throws IndexError for an index out
/// of range.
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntList output_size);
/// Does so over three dimensions; stride and padding do not change the result.
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntList output_size, IntList stride,
                    IntList padding);

}  // namespace lockstep
