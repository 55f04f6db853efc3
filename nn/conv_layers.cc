#include "nn/conv_layers.h"

#include <cmath>

#include "core/base/check.h"
#include "core/ops/conv/conv.h"
#include "nn/padded.h"

namespace lockstep::nn {

namespace {

/// [first, second, kernel...]
Dims kernel_sizes(size_t spatial, int64_t first, int64_t second, const SpatialSize& kernel) {
  LS_CHECK(kernel.count() == 1 || kernel.count() == spatial, ShapeError,
           "[conv] expected one size of the kernel or {}, got {}.", spatial, kernel.count());
  Dims sizes = {first, second};
  for (size_t i = 0; i < spatial; ++i) sizes.push_back(kernel[i]);
  return sizes;
}

void check_groups(int64_t in, int64_t out, int64_t groups) {
  LS_CHECK(groups > 0 && in % groups == 0 && out % groups == 0, ShapeError,
           "[conv] expected groups that divide {} channels and {} features, got {}.", in, out,
           groups);
}

/// Bound of PyTorch's default for a weight of these sizes.
double bound_of_weight(IntList sizes) {
  double fan_in = 1;
  for (size_t i = 1; i < sizes.size(); ++i) fan_in *= static_cast<double>(sizes[i]);
  return fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
}

/// The padding in the order of the pad operators: the last dimension first, before and after.
Dims pad_pairs(size_t spatial, const SpatialSize& padding) {
  Dims pairs;
  for (size_t i = spatial; i-- > 0;) {
    pairs.push_back(padding[i]);
    pairs.push_back(padding[i]);
  }
  return pairs;
}

}  // namespace

Convolution::Convolution(size_t spatial, int64_t in, int64_t out, const SpatialSize& kernel,
                         ConvOptions options)
    : spatial_(spatial), options_(std::move(options)) {
  check_groups(in, out, options_.groups);
  const Dims sizes = kernel_sizes(spatial, out, in / options_.groups, kernel);
  const double bound = bound_of_weight(sizes);
  weight = register_parameter("weight", initial_values(sizes, fill_uniform(bound)));
  if (options_.bias) {
    bias = register_parameter("bias", initial_values({out}, fill_uniform(bound)));
  }
}

Convolution::Convolution(size_t spatial, int64_t in, int64_t out, const SpatialSize& kernel,
                         ConvOptions options, FillValues weights)
    : spatial_(spatial), options_(std::move(options)) {
  check_groups(in, out, options_.groups);
  weight = register_parameter(
      "weight",
      initial_values(kernel_sizes(spatial, out, in / options_.groups, kernel), std::move(weights)));
  if (options_.bias) bias = register_parameter("bias", initial_values({out}, fill_with(0)));
}

Tensor Convolution::convolve(const Tensor& x) const {
  const bool zeros = options_.padding_mode == PaddingMode::kZeros;
  const Tensor input =
      zeros ? x : padded(x, pad_pairs(spatial_, options_.padding), options_.padding_mode);
  const auto apply = spatial_ == 1 ? conv1d : spatial_ == 2 ? conv2d : conv3d;
  return apply(input, weight, bias, options_.stride, zeros ? options_.padding : SpatialSize(0),
               options_.dilation, options_.groups);
}

Tensor Convolution::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return convolve(input); }, x);
}

TransposedConvolution::TransposedConvolution(size_t spatial, int64_t in, int64_t out,
                                             const SpatialSize& kernel,
                                             ConvTransposeOptions options)
    : spatial_(spatial), options_(std::move(options)) {
  check_groups(in, out, options_.groups);
  const Dims sizes = kernel_sizes(spatial, in, out / options_.groups, kernel);
  const double bound = bound_of_weight(sizes);
  weight = register_parameter("weight", initial_values(sizes, fill_uniform(bound)));
  if (options_.bias) {
    bias = register_parameter("bias", initial_values({out}, fill_uniform(bound)));
  }
}

Tensor TransposedConvolution::forward(const Tensor& x) const {
  const auto apply = spatial_ == 1   ? conv_transpose1d
                     : spatial_ == 2 ? conv_transpose2d
                                     : conv_transpose3d;
  return run_forward(
      [&](const Tensor& input) {
        return apply(input, weight, bias, options_.stride, options_.padding,
                     options_.output_padding, options_.groups, options_.dilation);
      },
      x);
}

}  // namespace lockstep::nn
