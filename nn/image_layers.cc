#include "nn/image_layers.h"

#include <cmath>

namespace lockstep::nn {

namespace {

FillValues kaiming_of_fan_out(int64_t out, const SpatialSize& kernel) {
  return fill_normal(std::sqrt(2.0 / static_cast<double>(out * kernel[0] * kernel[1])));
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, const SpatialSize& kernel, Conv2dOptions options)
    : Convolution(2, in, out, kernel,
                  {.stride = options.stride,
                   .padding = options.padding,
                   .dilation = options.dilation,
                   .groups = options.groups,
                   .bias = options.bias,
                   .padding_mode = options.padding_mode},
                  kaiming_of_fan_out(out, kernel)) {}

}  // namespace lockstep::nn
