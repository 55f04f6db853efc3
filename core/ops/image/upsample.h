#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Resampling of images [N, C, H, W] to [N, C, H', W']. Result pixels are H / H' and W / W' input
// pixels apart, or 1 / `scales` if given; with `align_corners` the centres of the corner pixels are
// aligned, else the edges of the images. Floating dtypes.

/// Nearest neighbour, rounded towards the origin.
Tensor upsample_nearest2d(const Tensor& self, IntList output_size,
                          std::optional<double> scales_h = std::nullopt,
                          std::optional<double> scales_w = std::nullopt);
/// Bilinear interpolation between the four surrounding pixels.
Tensor upsample_bilinear2d(const Tensor& self, IntList output_size, bool align_corners,
                           std::optional<double> scales_h = std::nullopt,
                           std::optional<double> scales_w = std::nullopt);
/// Cubic convolution of the sixteen surrounding pixels, a = -0.75 (Keys 1981); border pixels are
/// repeated.
Tensor upsample_bicubic2d(const Tensor& self, IntList output_size, bool align_corners,
                          std::optional<double> scales_h = std::nullopt,
                          std::optional<double> scales_w = std::nullopt);

// The same for lines [N, C, L] and volumes [N, C, D, H, W].

Tensor upsample_nearest1d(const Tensor& self, IntList output_size,
                          std::optional<double> scales = std::nullopt);
Tensor upsample_linear1d(const Tensor& self, IntList output_size, bool align_corners,
                         std::optional<double> scales = std::nullopt);
Tensor upsample_nearest3d(const Tensor& self, IntList output_size,
                          std::optional<double> scales_d = std::nullopt,
                          std::optional<double> scales_h = std::nullopt,
                          std::optional<double> scales_w = std::nullopt);
Tensor upsample_trilinear3d(const Tensor& self, IntList output_size, bool align_corners,
                            std::optional<double> scales_d = std::nullopt,
                            std::optional<double> scales_h = std::nullopt,
                            std::optional<double> scales_w = std::nullopt);

// Gradients of the input. Each is a sum over the result pixels that read an input pixel, in a fixed
// order.

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
