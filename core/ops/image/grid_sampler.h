#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Samples images [N, C, H, W] at the points of grid [N, H', W', 2]; their (x, y) run from -1 to 1
/// over the image: [N, C, H', W']. `interpolation_mode` is 0 bilinear, 1 nearest or 2 bicubic (Keys
/// 1981, a = -0.75); `padding_mode` gives the values outside the image: 0 zeros, 1 the border, 2
/// the mirrored image. With `align_corners`, -1 and 1 are the centres of the outer pixels, else
/// their outer edges.
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners);
/// Gradients of input and grid; those not selected by `output_mask` are undefined.
std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input,
                                                    const Tensor& grid, int64_t interpolation_mode,
                                                    int64_t padding_mode, bool align_corners,
                                                    BoolList output_mask);

}  // namespace lockstep
