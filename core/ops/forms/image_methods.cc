// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::adaptive_avg_pool1d(IntList output_size) const {
  return form<Tensor(const Tensor&, IntList), "adaptive_avg_pool1d">()(*this, output_size);
}
Tensor Tensor::adaptive_avg_pool2d(IntList output_size) const {
  return form<Tensor(const Tensor&, IntList), "adaptive_avg_pool2d">()(*this, output_size);
}
Tensor Tensor::adaptive_avg_pool3d(IntList output_size) const {
  return form<Tensor(const Tensor&, IntList), "adaptive_avg_pool3d">()(*this, output_size);
}
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool1d(IntList output_size) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList), "adaptive_max_pool1d">()(*this, output_size);
}
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool2d(IntList output_size) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList), "adaptive_max_pool2d">()(*this, output_size);
}
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool3d(IntList output_size) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList), "adaptive_max_pool3d">()(*this, output_size);
}
Tensor Tensor::avg_pool1d(IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                          bool count_include_pad) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, bool, bool), "avg_pool1d">()(*this, kernel_size, stride, padding, ceil_mode, count_include_pad);
}
Tensor Tensor::avg_pool2d(IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                          bool count_include_pad, std::optional<int64_t> divisor_override) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, bool, bool, std::optional<int64_t>), "avg_pool2d">()(*this, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
Tensor Tensor::avg_pool3d(IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                          bool count_include_pad, std::optional<int64_t> divisor_override) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, bool, bool, std::optional<int64_t>), "avg_pool3d">()(*this, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
Tensor Tensor::constant_pad_nd(IntList pad, const Scalar& value) const {
  return form<Tensor(const Tensor&, IntList, Scalar), "constant_pad_nd">()(*this, pad, value);
}
std::tuple<Tensor, Tensor> Tensor::fractional_max_pool2d(IntList kernel_size, IntList output_size,
                                                         const Tensor& random_samples) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, const Tensor&), "fractional_max_pool2d">()(*this, kernel_size, output_size, random_samples);
}
Tensor Tensor::max_pool1d(IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                          bool ceil_mode) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, IntList, bool), "max_pool1d">()(*this, kernel_size, stride, padding, dilation, ceil_mode);
}
Tensor Tensor::max_pool2d(IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                          bool ceil_mode) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, IntList, bool), "max_pool2d">()(*this, kernel_size, stride, padding, dilation, ceil_mode);
}
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntList kernel_size, IntList stride,
                                                           IntList padding, IntList dilation,
                                                           bool ceil_mode) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, IntList, IntList, bool), "max_pool2d_with_indices">()(*this, kernel_size, stride, padding, dilation, ceil_mode);
}
Tensor Tensor::max_pool3d(IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                          bool ceil_mode) const {
  return form<Tensor(const Tensor&, IntList, IntList, IntList, IntList, bool), "max_pool3d">()(*this, kernel_size, stride, padding, dilation, ceil_mode);
}
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntList kernel_size, IntList stride,
                                                           IntList padding, IntList dilation,
                                                           bool ceil_mode) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, IntList, IntList, IntList, IntList, bool), "max_pool3d_with_indices">()(*this, kernel_size, stride, padding, dilation, ceil_mode);
}
Tensor Tensor::max_unpool2d(const Tensor& indices, IntList output_size) const {
  return form<Tensor(const Tensor&, const Tensor&, IntList), "max_unpool2d">()(*this, indices, output_size);
}
Tensor Tensor::max_unpool3d(const Tensor& indices, IntList output_size, IntList stride,
                            IntList padding) const {
  return form<Tensor(const Tensor&, const Tensor&, IntList, IntList, IntList), "max_unpool3d">()(*this, indices, output_size, stride, padding);
}
Tensor Tensor::pad(IntList pad, std::string_view mode, std::optional<double> value) const {
  return form<Tensor(const Tensor&, IntList, std::string_view, std::optional<double>), "pad">()(*this, pad, mode, value);
}
Tensor Tensor::reflection_pad1d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "reflection_pad1d">()(*this, padding);
}
Tensor Tensor::reflection_pad2d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "reflection_pad2d">()(*this, padding);
}
Tensor Tensor::reflection_pad3d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "reflection_pad3d">()(*this, padding);
}
Tensor Tensor::replication_pad1d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "replication_pad1d">()(*this, padding);
}
Tensor Tensor::replication_pad2d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "replication_pad2d">()(*this, padding);
}
Tensor Tensor::replication_pad3d(IntList padding) const {
  return form<Tensor(const Tensor&, IntList), "replication_pad3d">()(*this, padding);
}
Tensor Tensor::upsample_bicubic2d(IntList output_size, bool align_corners,
                                  std::optional<double> scales_h,
                                  std::optional<double> scales_w) const {
  return form<Tensor(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>), "upsample_bicubic2d">()(*this, output_size, align_corners, scales_h, scales_w);
}
Tensor Tensor::upsample_bilinear2d(IntList output_size, bool align_corners,
                                   std::optional<double> scales_h,
                                   std::optional<double> scales_w) const {
  return form<Tensor(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>), "upsample_bilinear2d">()(*this, output_size, align_corners, scales_h, scales_w);
}
Tensor Tensor::upsample_linear1d(IntList output_size, bool align_corners,
                                 std::optional<double> scales) const {
  return form<Tensor(const Tensor&, IntList, bool, std::optional<double>), "upsample_linear1d">()(*this, output_size, align_corners, scales);
}
Tensor Tensor::upsample_nearest1d(IntList output_size, std::optional<double> scales) const {
  return form<Tensor(const Tensor&, IntList, std::optional<double>), "upsample_nearest1d">()(*this, output_size, scales);
}
Tensor Tensor::upsample_nearest2d(IntList output_size, std::optional<double> scales_h,
                                  std::optional<double> scales_w) const {
  return form<Tensor(const Tensor&, IntList, std::optional<double>, std::optional<double>), "upsample_nearest2d">()(*this, output_size, scales_h, scales_w);
}
Tensor Tensor::upsample_nearest3d(IntList output_size, std::optional<double> scales_d,
                                  std::optional<double> scales_h,
                                  std::optional<double> scales_w) const {
  return form<Tensor(const Tensor&, IntList, std::optional<double>, std::optional<double>, std::optional<double>), "upsample_nearest3d">()(*this, output_size, scales_d, scales_h, scales_w);
}
Tensor Tensor::upsample_trilinear3d(IntList output_size, bool align_corners,
                                    std::optional<double> scales_d, std::optional<double> scales_h,
                                    std::optional<double> scales_w) const {
  return form<Tensor(const Tensor&, IntList, bool, std::optional<double>, std::optional<double>, std::optional<double>), "upsample_trilinear3d">()(*this, output_size, align_corners, scales_d, scales_h, scales_w);
}

}  // namespace lockstep
