#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "nn/conv_layers.h"
#include "nn/norm_layers.h"

namespace lockstep::nn {

/// Options of a 2d convolution with He's initialisation.
struct Conv2dOptions {
  SpatialSize stride = 1;
  SpatialSize padding = 0;
  int64_t groups = 1;
  bool bias = false;
  SpatialSize dilation = 1;
  PaddingMode padding_mode = PaddingMode::kZeros;
};

/// Convolution over two dimensions: x [batch, in, height, width].
class Conv2d : public Convolution {
 public:
  /// W is initialised normal with standard deviation sqrt(2 / (out * elements of the kernel)),
  /// which preserves the scale of gradients through ReLUs (He et al. 2015), the bias, if any, 0:
  /// for networks with batch norm.
  Conv2d(int64_t in, int64_t out, const SpatialSize& kernel, Conv2dOptions options = {});
  /// With PyTorch's initialisation, and a bias, where the options are written as
  /// `ConvOptions{...}`: Conv2d(3, 8, 3, ConvOptions{.stride = 2}).
  template <std::same_as<ConvOptions> Options>
  Conv2d(int64_t in, int64_t out, const SpatialSize& kernel, Options options)
      : Convolution(2, in, out, kernel, std::move(options)) {}
};

}  // namespace lockstep::nn
