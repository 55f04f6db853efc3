#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/image/grid_sampler.cc, defined in core/ops/image/grid_sampler_rules.cc.

Outputs grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                        int64_t padding_mode, bool align_corners);
Outputs grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                 int64_t interpolation_mode, int64_t padding_mode,
                                 bool align_corners, BoolList output_mask);

}  // namespace lockstep::rules
