#include "core/ops/forms/image.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& adaptive_avg_pool1d_out(const Tensor& out, const Tensor& self, IntList output_size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "adaptive_avg_pool1d.out">()(self, output_size, out);
}
const Tensor& adaptive_avg_pool2d_out(const Tensor& out, const Tensor& self, IntList output_size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "adaptive_avg_pool2d.out">()(self, output_size, out);
}
const Tensor& adaptive_avg_pool3d_out(const Tensor& out, const Tensor& self, IntList output_size) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "adaptive_avg_pool3d.out">()(self, output_size, out);
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_out(const Tensor& out, const Tensor& indices,
                                                   const Tensor& self, IntList output_size) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, const Tensor&, const Tensor&), "adaptive_max_pool2d.out">()(self, output_size, out, indices);
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d_out(const Tensor& out, const Tensor& indices,
                                                   const Tensor& self, IntList output_size) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, const Tensor&, const Tensor&), "adaptive_max_pool3d.out">()(self, output_size, out, indices);
}
const Tensor& avg_pool1d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride, IntList padding, bool ceil_mode,
                             bool count_include_pad) {
  return form<const Tensor&(const Tensor&, IntList, IntList, IntList, bool, bool, const Tensor&), "avg_pool1d.out">()(self, kernel_size, stride, padding, ceil_mode, count_include_pad, out);
}
const Tensor& avg_pool2d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride, IntList padding, bool ceil_mode,
                             bool count_include_pad, std::optional<int64_t> divisor_override) {
  return form<const Tensor&(const Tensor&, IntList, IntList, IntList, bool, bool, std::optional<int64_t>, const Tensor&), "avg_pool2d.out">()(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out);
}
const Tensor& avg_pool3d_out(const Tensor& out, const Tensor& self, IntList kernel_size,
                             IntList stride, IntList padding, bool ceil_mode,
                             bool count_include_pad, std::optional<int64_t> divisor_override) {
  return form<const Tensor&(const Tensor&, IntList, IntList, IntList, bool, bool, std::optional<int64_t>, const Tensor&), "avg_pool3d.out">()(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out);
}
const Tensor& constant_pad_nd_out(const Tensor& out, const Tensor& self, IntList pad,
                                  const Scalar& value) {
  return form<const Tensor&(const Tensor&, IntList, Scalar, const Tensor&), "constant_pad_nd.out">()(self, pad, value, out);
}
std::tuple<Tensor, Tensor> fractional_max_pool2d_out(const Tensor& output, const Tensor& indices,
                                                     const Tensor& self, IntList kernel_size,
                                                     IntList output_size,
                                                     const Tensor& random_samples) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, const Tensor&, const Tensor&, const Tensor&), "fractional_max_pool2d.output">()(self, kernel_size, output_size, random_samples, output, indices);
}
const Tensor& grid_sampler_2d_out(const Tensor& out, const Tensor& input, const Tensor& grid,
                                  int64_t interpolation_mode, int64_t padding_mode,
                                  bool align_corners) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, int64_t, bool, const Tensor&), "grid_sampler_2d.out">()(input, grid, interpolation_mode, padding_mode, align_corners, out);
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices_out(const Tensor& out, const Tensor& indices,
                                                       const Tensor& self, IntList kernel_size,
                                                       IntList stride, IntList padding,
                                                       IntList dilation, bool ceil_mode) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, IntList, IntList, bool, const Tensor&, const Tensor&), "max_pool2d_with_indices.out">()(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices_out(const Tensor& out, const Tensor& indices,
                                                       const Tensor& self, IntList kernel_size,
                                                       IntList stride, IntList padding,
                                                       IntList dilation, bool ceil_mode) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, IntList, IntList, bool, const Tensor&, const Tensor&), "max_pool3d_with_indices.out">()(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
}
const Tensor& max_unpool2d_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                               IntList output_size) {
  return form<const Tensor&(const Tensor&, const Tensor&, IntList, const Tensor&), "max_unpool2d.out">()(self, indices, output_size, out);
}
const Tensor& max_unpool3d_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                               IntList output_size, IntList stride, IntList padding) {
  return form<const Tensor&(const Tensor&, const Tensor&, IntList, IntList, IntList, const Tensor&), "max_unpool3d.out">()(self, indices, output_size, stride, padding, out);
}
Tensor pad(const Tensor& self, IntList pad, std::string_view mode, std::optional<double> value) {
  return form<Tensor(const Tensor&, IntList, std::string_view, std::optional<double>), "pad">()(self, pad, mode, value);
}
Tensor reflection_pad1d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "reflection_pad1d">()(self, padding);
}
const Tensor& reflection_pad1d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "reflection_pad1d.out">()(self, padding, out);
}
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "reflection_pad1d_backward">()(grad_output, self, padding);
}
Tensor reflection_pad2d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "reflection_pad2d">()(self, padding);
}
const Tensor& reflection_pad2d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "reflection_pad2d.out">()(self, padding, out);
}
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "reflection_pad2d_backward">()(grad_output, self, padding);
}
Tensor reflection_pad3d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "reflection_pad3d">()(self, padding);
}
const Tensor& reflection_pad3d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "reflection_pad3d.out">()(self, padding, out);
}
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "reflection_pad3d_backward">()(grad_output, self, padding);
}
Tensor replication_pad1d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "replication_pad1d">()(self, padding);
}
const Tensor& replication_pad1d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "replication_pad1d.out">()(self, padding, out);
}
Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "replication_pad1d_backward">()(grad_output, self, padding);
}
Tensor replication_pad2d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "replication_pad2d">()(self, padding);
}
const Tensor& replication_pad2d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "replication_pad2d.out">()(self, padding, out);
}
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "replication_pad2d_backward">()(grad_output, self, padding);
}
Tensor replication_pad3d(const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, IntList), "replication_pad3d">()(self, padding);
}
const Tensor& replication_pad3d_out(const Tensor& out, const Tensor& self, IntList padding) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "replication_pad3d.out">()(self, padding, out);
}
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "replication_pad3d_backward">()(grad_output, self, padding);
}
const Tensor& upsample_bicubic2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     bool align_corners, std::optional<double> scales_h,
                                     std::optional<double> scales_w) {
  return form<const Tensor&(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>, const Tensor&), "upsample_bicubic2d.out">()(self, output_size, align_corners, scales_h, scales_w, out);
}
Tensor upsample_bicubic2d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                          std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>), "upsample_bicubic2d.vec">()(input, output_size, align_corners, scale_factors);
}
const Tensor& upsample_bilinear2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                      bool align_corners, std::optional<double> scales_h,
                                      std::optional<double> scales_w) {
  return form<const Tensor&(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>, const Tensor&), "upsample_bilinear2d.out">()(self, output_size, align_corners, scales_h, scales_w, out);
}
Tensor upsample_bilinear2d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                           std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>), "upsample_bilinear2d.vec">()(input, output_size, align_corners, scale_factors);
}
const Tensor& upsample_bilinear2d_out(const Tensor& out, const Tensor& input,
                                      OptionalIntList output_size, bool align_corners,
                                      std::optional<DoubleList> scale_factors) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>, const Tensor&), "upsample_bilinear2d.vec_out">()(input, output_size, align_corners, scale_factors, out);
}
const Tensor& upsample_linear1d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                    bool align_corners, std::optional<double> scales) {
  return form<const Tensor&(const Tensor&, IntList, bool, std::optional<double>, const Tensor&), "upsample_linear1d.out">()(self, output_size, align_corners, scales, out);
}
Tensor upsample_linear1d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                         std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>), "upsample_linear1d.vec">()(input, output_size, align_corners, scale_factors);
}
const Tensor& upsample_nearest1d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales) {
  return form<const Tensor&(const Tensor&, IntList, std::optional<double>, const Tensor&), "upsample_nearest1d.out">()(self, output_size, scales, out);
}
Tensor upsample_nearest1d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, std::optional<DoubleList>), "upsample_nearest1d.vec">()(input, output_size, scale_factors);
}
const Tensor& upsample_nearest2d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales_h,
                                     std::optional<double> scales_w) {
  return form<const Tensor&(const Tensor&, IntList, std::optional<double>, std::optional<double>, const Tensor&), "upsample_nearest2d.out">()(self, output_size, scales_h, scales_w, out);
}
Tensor upsample_nearest2d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, std::optional<DoubleList>), "upsample_nearest2d.vec">()(input, output_size, scale_factors);
}
const Tensor& upsample_nearest2d_out(const Tensor& out, const Tensor& input,
                                     OptionalIntList output_size,
                                     std::optional<DoubleList> scale_factors) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, std::optional<DoubleList>, const Tensor&), "upsample_nearest2d.vec_out">()(input, output_size, scale_factors, out);
}
const Tensor& upsample_nearest3d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                     std::optional<double> scales_d, std::optional<double> scales_h,
                                     std::optional<double> scales_w) {
  return form<const Tensor&(const Tensor&, IntList, std::optional<double>, std::optional<double>, std::optional<double>, const Tensor&), "upsample_nearest3d.out">()(self, output_size, scales_d, scales_h, scales_w, out);
}
Tensor upsample_nearest3d(const Tensor& input, OptionalIntList output_size,
                          std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, std::optional<DoubleList>), "upsample_nearest3d.vec">()(input, output_size, scale_factors);
}
const Tensor& upsample_trilinear3d_out(const Tensor& out, const Tensor& self, IntList output_size,
                                       bool align_corners, std::optional<double> scales_d,
                                       std::optional<double> scales_h,
                                       std::optional<double> scales_w) {
  return form<const Tensor&(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>, std::optional<double>, const Tensor&), "upsample_trilinear3d.out">()(self, output_size, align_corners, scales_d, scales_h, scales_w, out);
}
Tensor upsample_trilinear3d(const Tensor& input, OptionalIntList output_size, bool align_corners,
                            std::optional<DoubleList> scale_factors) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DoubleList>), "upsample_trilinear3d.vec">()(input, output_size, align_corners, scale_factors);
}

}  // namespace lockstep
