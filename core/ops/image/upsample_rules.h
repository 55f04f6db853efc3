#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/image/upsample.cc, defined in core/ops/image/upsample_rules.cc.

Outputs upsample_nearest2d(const Tensor& self, IntList output_size, std::optional<double> scales_h,
                           std::optional<double> scales_w);
Outputs upsample_nearest2d_backward(const Tensor& grad_output, IntList output_size,
                                    IntList input_size, std::optional<double> scales_h,
                                    std::optional<double> scales_w);
/// Rules of upsample_bilinear2d and upsample_bicubic2d, and of their backwards.
Outputs upsample_smooth2d(const Tensor& self, IntList output_size, bool align_corners,
                          std::optional<double> scales_h, std::optional<double> scales_w);
Outputs upsample_smooth2d_backward(const Tensor& grad_output, IntList output_size,
                                   IntList input_size, bool align_corners,
                                   std::optional<double> scales_h, std::optional<double> scales_w);

}  // namespace lockstep::rules
