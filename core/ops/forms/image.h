#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& adaptive_avg_pool1d_out(const Tensor& out, const Tensor& self, IntList output_size);
const Tensor& adaptive_avg_pool2d_out(const Tensor& out, const Tensor& self, IntList output_size);
const Tensor& adaptive_avg_pool3d_out(const Tensor& out, const Tensor& self, IntList output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool2d_out(const Tensor& out, const Tensor& indices,
                                                   const Tensor& self, IntList output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d_out(const Tensor& out, const Tensor& indices,
                                                   const Tensor& self, IntList output_size);
const Tensor& avg_pool1d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride = {}, IntList padding = {0}, bool ceil_mode = false,
                             bool count_include_pad = true);
const Tensor& avg_pool2d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride = {}, IntList padding = {0, 0}, bool ceil_mode = false,
                             bool count_include_pad = true,
                             std::optional<int64_t> divisor_override = std::nullopt);
const Tensor& avg_pool3d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride = {}, IntList padding = {0, 0, 0},
                             bool ceil_mode = false, bool count_include_pad = true,
                             std::optional<int64_t> divisor_override = std::nullopt);
const Tensor& constant_pad_nd_out(const Tensor& out, const Tensor& self, IntList pad,
                                  const Scalar& value = 0);
std::tuple<Tensor, Tensor> fractional_max_pool2d_out(const Tensor& output, const Tensor& indices,
                                                     const Tensor& self, IntList kernel_size,
                                                     IntList output_size,
                                                     const Tensor& random_samples);
const Tensor& grid_sampler_2d_out(const Tensor& out, const Tensor& input, const Tensor& grid,
                                  int64_t interpolation_mode, int64_t padding_mode,
                                  bool align_corners);
std::tuple<Tensor, Tensor> max_pool2d_with_indices_out(const Tensor& out, const Tensor& indices,
                                                       const Tensor& self, IntList kernel_size,
                                                       IntList stride = {},
                                                       IntList padding = {0, 0},
                                                       IntList dilation = {1, 1},
                                                       bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool3d_with_indices_out(const Tensor& out, const Tensor& indices,
                                                       const Tensor& self, IntList kernel_size,
                                                       IntList stride = {},
                                                       IntList padding = {0, 0, 0},
                                                       IntList dilation = {1, 1, 1},
                                                       bool ceil_mode = false);
const Tensor& max_unpool2d_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                               IntList output_size);
const Tensor& max_unpool3d_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                               IntList output_size, IntList stride, IntList padding);
/// Pads self in mode constant, reflect, replicate or circular.
Tensor pad(const Tensor& self, IntList pad, std::string_view mode = "constant",
           std::optional<double> value = std::nullopt);
/// Pads the last dimension with self mirrored at its borders.
Tensor reflection_pad1d(const Tensor& self, IntList padding);
const Tensor& reflection_pad1d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of reflection_pad1d.
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads the last two dimensions with self mirrored at its borders.
Tensor reflection_pad2d(const Tensor& self, IntList padding);
const Tensor& reflection_pad2d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of reflection_pad2d.
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads the last three dimensions with self mirrored at its borders.
Tensor reflection_pad3d(const Tensor& self, IntList padding);
const Tensor& reflection_pad3d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of reflection_pad3d.
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads the last dimension by repeating the border elements.
Tensor replication_pad1d(const Tensor& self, IntList padding);
const Tensor& replication_pad1d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of replication_pad1d.
Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads the last two dimensions by repeating the border elements.
Tensor replication_pad2d(const Tensor& self, IntList padding);
const Tensor& replication_pad2d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of replication_pad2d.
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads the last three dimensions by repeating the border elements.
Tensor replication_pad3d(const Tensor& self, IntList padding);
const Tensor& replication_pad3d_out(const Tensor& out, const Tensor& self, IntList padding);
/// The derivative of replication_pad3d.
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
const Tensor& upsample_bicubic2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     bool align_corners,
                                     std::optional<double> scales_h = std::nullopt,
                                     std::optional<double> scales_w = std::nullopt);
Tensor upsample_bicubic2d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                          std::optional<DoubleList> scale_factors);
const Tensor& upsample_bilinear2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                      bool align_corners,
                                      std::optional<double> scales_h = std::nullopt,
                                      std::optional<double> scales_w = std::nullopt);
Tensor upsample_bilinear2d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                           std::optional<DoubleList> scale_factors);
const Tensor& upsample_bilinear2d_out(const Tensor& out, const Tensor& input,
                                      OptionalIntList output_size, bool align_corners,
                                      std::optional<DoubleList> scale_factors);
const Tensor& upsample_linear1d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                    bool align_corners,
                                    std::optional<double> scales = std::nullopt);
Tensor upsample_linear1d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                         std::optional<DoubleList> scale_factors);
const Tensor& upsample_nearest1d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales = std::nullopt);
Tensor upsample_nearest1d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors);
const Tensor& upsample_nearest2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales_h = std::nullopt,
                                     std::optional<double> scales_w = std::nullopt);
Tensor upsample_nearest2d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors);
const Tensor& upsample_nearest2d_out(const Tensor& out, const Tensor& input,
                                     OptionalIntList output_size,
                                     std::optional<DoubleList> scale_factors);
const Tensor& upsample_nearest3d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales_d = std::nullopt,
                                     std::optional<double> scales_h = std::nullopt,
                                     std::optional<double> scales_w = std::nullopt);
Tensor upsample_nearest3d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors);
const Tensor& upsample_trilinear3d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                       bool align_corners,
                                       std::optional<double> scales_d = std::nullopt,
                                       std::optional<double> scales_h = std::nullopt,
                                       std::optional<double> scales_w = std::nullopt);
Tensor upsample_trilinear3d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                            std::optional<DoubleList> scale_factors);

}  // namespace lockstep
