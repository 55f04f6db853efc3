#include "nn/shape_layers.h"

#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"

namespace lockstep::nn {

Tensor Identity::forward(const Tensor& x) const {
  return run_forward([](const Tensor& input) { return input; }, x);
}

Tensor Flatten::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return input.flatten(start_dim_, end_dim_); },
                     x);
}

Tensor Unflatten::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return unflatten(input, dim_, sizes_); }, x);
}

Tensor PixelShuffle::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return pixel_shuffle(input, factor_); }, x);
}

Tensor PixelUnshuffle::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return pixel_unshuffle(input, factor_); }, x);
}

}  // namespace lockstep::nn
