#include "nn/upsample.h"

#include <array>

#include "core/base/check.h"
#include "core/ops/image/upsample.h"

namespace lockstep::nn {

Upsample::Upsample(UpsampleOptions options) : options_(std::move(options)) {
  LS_CHECK(options_.size.has_value() == options_.scale_factor.empty(), Error,
           "[upsample] expected a size or a scale_factor, got {}.",
           options_.size ? "both" : "neither");
}

Tensor Upsample::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return resample(input); }, x);
}

Tensor Upsample::resample(const Tensor& x) const {
  LS_CHECK(x.dim() >= 3 && x.dim() <= 5, ShapeError,
           "[upsample] expected an input of 3 to 5 dimensions, got {}.", x.shape());
  const auto spatial = static_cast<size_t>(x.dim() - 2);
  const std::vector<double>& factors = options_.scale_factor;
  LS_CHECK(options_.size || factors.size() == 1 || factors.size() == spatial, ShapeError,
           "[upsample] expected one factor or {}, got {}.", spatial, factors.size());
  Dims size;
  std::array<std::optional<double>, 3> scales;
  for (size_t i = 0; i < spatial; ++i) {
    if (options_.size) {
      size.push_back((*options_.size)[i]);
      continue;
    }
    scales[i] = factors.size() == 1 ? factors[0] : factors[i];
    size.push_back(static_cast<int64_t>(static_cast<double>(x.size(static_cast<int64_t>(i) + 2)) *
                                        *scales[i]));
  }
  const bool align = options_.align_corners;
  switch (options_.mode) {
    case UpsampleMode::kNearest:
      if (spatial == 1) return upsample_nearest1d(x, size, scales[0]);
      if (spatial == 2) return upsample_nearest2d(x, size, scales[0], scales[1]);
      return upsample_nearest3d(x, size, scales[0], scales[1], scales[2]);
    case UpsampleMode::kLinear:
      if (spatial == 1) return upsample_linear1d(x, size, align, scales[0]);
      break;
    case UpsampleMode::kBilinear:
      if (spatial == 2) return upsample_bilinear2d(x, size, align, scales[0], scales[1]);
      break;
    case UpsampleMode::kBicubic:
      if (spatial == 2) return upsample_bicubic2d(x, size, align, scales[0], scales[1]);
      break;
    case UpsampleMode::kTrilinear:
      if (spatial == 3) {
        return upsample_trilinear3d(x, size, align, scales[0], scales[1], scales[2]);
      }
      break;
  }
  throw ShapeError(
      fmt::format("[upsample] the mode is for another number of dimensions than {} has: expected "
                  "linear for 3, bilinear or bicubic for 4, trilinear for 5.",
                  x.shape()));
}

}  // namespace lockstep::nn
