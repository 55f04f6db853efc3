#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// A convolution as the kernels see it, independent of which of its three tensors is computed:
///   image  [batch, channels, image...]
///   weight [features, channels / groups, kernel...]
///   map    [batch, features, map...], the image convolved with the weight
/// A transposed convolution computes an image from a map. All are row-major and of one dtype.
struct ConvProblem {
  DType dtype = DType::kF32;
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t channels = 0;
  int64_t features = 0;
  // One number per spatial dimension.
  Dims image;
  Dims kernel;
  Dims map;
  Dims stride;
  Dims padding;
  Dims dilation;

  size_t rank() const { return kernel.size(); }
  /// Elements of one channel or feature.
  int64_t image_size() const { return count_elements(image); }
  int64_t kernel_size() const { return count_elements(kernel); }
  int64_t map_size() const { return count_elements(map); }
  /// Elements of the whole weight, and of one image and one map of the batch.
  int64_t weight_count() const { return features * (channels / groups) * kernel_size(); }
  int64_t image_count() const { return channels * image_size(); }
  int64_t map_count() const { return features * map_size(); }
  /// Floating-point operations for one image.
  double flops_per_image() const {
    return 2.0 * static_cast<double>(weight_count()) * static_cast<double>(map_size());
  }
  bool is_empty() const { return batch * image_count() * weight_count() * map_count() == 0; }
};

/// `input` is the map if `transposed`, else the image; `output` is the other one. Each list has one
/// number per spatial dimension, or a single number for all.
ConvProblem make_conv_problem(const TensorArg& input, const TensorArg& weight,
                              const TensorArg& output, IntList stride, IntList padding,
                              IntList dilation, bool transposed, int64_t groups);

/// The tensor that is computed from the other two.
enum class ConvResult : uint8_t { kImage, kWeight, kMap };

/// Addresses of the three tensors; the computed one is written, the others are read.
struct ConvTensors {
  void* image = nullptr;
  void* weight = nullptr;
  void* map = nullptr;
  /// [features], added to the map; null for none. Must be null for other results.
  const void* bias = nullptr;
};

/// The three tensors with their strides.
struct ConvArguments {
  TensorArg image;
  TensorArg weight;
  TensorArg map;

  ConvTensors addresses() const { return {image.address, weight.address, map.address}; }
};

/// Computes a convolution's backward: calls `convolve(result, arguments)` for the gradient of the
/// input if `dx` is defined, and for the gradient of the weight if `dw` is.
template <class Convolve>
void convolve_gradients(const Out& dx, const Out& dw, const In& grad_output, const In& input,
                        const In& weight, bool transposed, const Convolve& convolve) {
  const ConvArguments given{transposed ? grad_output : input, weight,
                            transposed ? input : grad_output};
  if (dx.defined()) {
    ConvArguments with = given;
    (transposed ? with.map : with.image) = dx;
    convolve(transposed ? ConvResult::kMap : ConvResult::kImage, with);
  }
  if (dw.defined()) {
    ConvArguments with = given;
    with.weight = dw;
    convolve(ConvResult::kWeight, with);
  }
}

/// Number of parts the batch is split into when partial weight gradients are summed. It depends on
/// the shape alone, so that the result does not depend on the thread count. Large weights get fewer
/// parts to limit the memory of the partial sums; each part has at least kLeastFlops of work.
inline int64_t weight_parts(const ConvProblem& p) {
  constexpr int64_t kLargeWeight = 1 << 18;  // elements
  const int64_t most = p.weight_count() > kLargeWeight ? 8 : 16;
  constexpr double kLeastFlops = 4e6;
  const double images = std::max(1.0, kLeastFlops / std::max(1.0, p.flops_per_image()));
  const auto parts = static_cast<int64_t>(static_cast<double>(p.batch) / images);
  return std::clamp<int64_t>(parts, 1, most);
}

}  // namespace lockstep
