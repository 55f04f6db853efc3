#include "nn/dropout.h"

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"

namespace lockstep::nn {

namespace {

double checked_probability(double p) {
  LS_CHECK(p >= 0 && p <= 1, Error, "[dropout] expected a probability in [0, 1], got {}.", p);
  return p;
}

}  // namespace

Dropout::Dropout(double p) : p_(checked_probability(p)) {}

Tensor Dropout::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return dropout(input, p_, is_training()); }, x);
}

ChannelDropout::ChannelDropout(double p, int64_t spatial)
    : p_(checked_probability(p)), spatial_(spatial) {}

Tensor ChannelDropout::forward(const Tensor& x) const {
  LS_CHECK(x.dim() == spatial_ + 1 || x.dim() == spatial_ + 2, ShapeError,
           "[dropout] expected an input of {} or {} dimensions, got {}.", spatial_ + 1,
           spatial_ + 2, x.shape());
  return run_forward(
      [this](const Tensor& input) {
        if (!is_training() || p_ == 0) return input;
        Dims sizes = to_dims(input.sizes());
        for (size_t i = sizes.size() - static_cast<size_t>(spatial_); i < sizes.size(); ++i) {
          sizes[i] = 1;
        }
        return input * dropout(ones(sizes, input.options()), p_, true);
      },
      x);
}

}  // namespace lockstep::nn
