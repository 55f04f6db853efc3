#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/module.h"
#include "nn/spatial_size.h"

namespace lockstep::nn {

/// How Upsample interpolates. kLinear is for one dimension, kBilinear and kBicubic for two,
/// kTrilinear for three.
enum class UpsampleMode : uint8_t { kNearest, kLinear, kBilinear, kBicubic, kTrilinear };

struct UpsampleOptions {
  std::optional<SpatialSize> size = {};   ///< of the result; this or scale_factor
  std::vector<double> scale_factor = {};  ///< one, or one for each dimension
  UpsampleMode mode = UpsampleMode::kNearest;
  bool align_corners = false;  ///< of modes other than kNearest
};

/// Resamples x [batch, channels, spatial...] of one to three dimensions
/// (core/ops/image/upsample.h). The result's size is `size`, or each size of x times its factor,
/// rounded down. Throws Error unless size or scale_factor is given, ShapeError for a mode that is
/// of another number of dimensions.
class Upsample : public Module {
 public:
  explicit Upsample(UpsampleOptions options);
  Tensor forward(const Tensor& x) const;

 private:
  Tensor resample(const Tensor& x) const;

  UpsampleOptions options_;
};

}  // namespace lockstep::nn
