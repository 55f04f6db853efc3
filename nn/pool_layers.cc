#include "nn/pool_layers.h"

#include "core/base/check.h"
#include "core/ops/image/pool.h"

namespace lockstep::nn {

Tensor MaxPool::forward(const Tensor& x) const {
  const auto pool = spatial_ == 1 ? max_pool1d : spatial_ == 2 ? max_pool2d : max_pool3d;
  return run_forward(
      [&](const Tensor& input) {
        return pool(input, kernel_, options_.stride.value_or(kernel_), options_.padding,
                    options_.dilation, options_.ceil_mode);
      },
      x);
}

AvgPool::AvgPool(int64_t spatial, const SpatialSize& kernel, AvgPoolOptions options)
    : spatial_(spatial), kernel_(kernel), options_(std::move(options)) {
  LS_CHECK(spatial > 1 || !options_.divisor_override, Error,
           "[avg_pool1d] expected no divisor_override, got {}. Scale the result instead.",
           options_.divisor_override.value_or(0));
}

Tensor AvgPool::pool(const Tensor& x) const {
  const SpatialSize stride = options_.stride.value_or(kernel_);
  if (spatial_ == 1) {
    return avg_pool1d(x, kernel_, stride, options_.padding, options_.ceil_mode,
                      options_.count_include_pad);
  }
  const auto pool = spatial_ == 2 ? avg_pool2d : avg_pool3d;
  return pool(x, kernel_, stride, options_.padding, options_.ceil_mode, options_.count_include_pad,
              options_.divisor_override);
}

Tensor AvgPool::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return pool(input); }, x);
}

namespace {

/// One number for each dimension, as the operators take it.
Dims each_size(const SpatialSize& size, int64_t spatial) {
  Dims sizes;
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) sizes.push_back(size[i]);
  return sizes;
}

}  // namespace

Tensor AdaptiveAvgPool::forward(const Tensor& x) const {
  const auto pool = spatial_ == 1   ? adaptive_avg_pool1d
                    : spatial_ == 2 ? adaptive_avg_pool2d
                                    : adaptive_avg_pool3d;
  return run_forward([&](const Tensor& input) { return pool(input, each_size(output_, spatial_)); },
                     x);
}

Tensor AdaptiveMaxPool::forward(const Tensor& x) const {
  const auto pool = spatial_ == 1   ? adaptive_max_pool1d
                    : spatial_ == 2 ? adaptive_max_pool2d
                                    : adaptive_max_pool3d;
  return run_forward(
      [&](const Tensor& input) { return std::get<0>(pool(input, each_size(output_, spatial_))); },
      x);
}

}  // namespace lockstep::nn
