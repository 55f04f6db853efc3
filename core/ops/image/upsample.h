#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Images [N, C, H, W] resampled to [N, C, H', W']. Pixels are squares, and the scale is H / H' and
// W / W' unless `scales` (result / input) are given; with `align_corners` the centres of the corner
// pixels are kept instead. Floating dtypes.

/// Each pixel from the nearest one towards the origin.
Tensor upsample_nearest2d(const Tensor& self, IntList output_size,
                          std::optional<double> scales_h = std::nullopt,
                          std::optional<double> scales_w = std::nullopt);
/// From the four pixels around it.
Tensor upsample_bilinear2d(const Tensor& self, IntList output_size, bool align_corners,
                           std::optional<double> scales_h = std::nullopt,
                           std::optional<double> scales_w = std::nullopt);
/// From the sixteen around it: cubic convolution, a = -0.75 (Keys 1981); the border is repeated.
Tensor upsample_bicubic2d(const Tensor& self, IntList output_size, bool align_corners,
                          std::optional<double> scales_h = std::nullopt,
                          std::optional<double> scales_w = std::nullopt);

// Their derivatives: sums over the pixels that read a pixel, in one order.

Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size,
                                   std::optional<double> scales_h = std::nullopt,
                                   std::optional<double> scales_w = std::nullopt);
Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntList output_size,
                                    IntList input_size, bool align_corners,
                                    std::optional<double> scales_h = std::nullopt,
                                    std::optional<double> scales_w = std::nullopt);
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, bool align_corners,
                                   std::optional<double> scales_h = std::nullopt,
                                   std::optional<double> scales_w = std::nullopt);

}  // namespace lockstep
