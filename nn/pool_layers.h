#pragma once

#include <cstdint>
#include <optional>

#include "nn/module.h"
#include "nn/spatial_size.h"

namespace lockstep::nn {

// Pooling (core/ops/image/pool.h) of x [batch, channels, spatial...], the batch optional. Options
// and defaults are PyTorch's. The classes without a number in their names hold what those for one
// to three dimensions have in common.

struct MaxPoolOptions {
  std::optional<SpatialSize> stride = {};  ///< default: the kernel's size
  SpatialSize padding = 0;
  SpatialSize dilation = 1;
  bool ceil_mode = false;
};

class MaxPool : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  MaxPool(int64_t spatial, const SpatialSize& kernel, MaxPoolOptions options)
      : spatial_(spatial), kernel_(kernel), options_(std::move(options)) {}
  MaxPool(MaxPool&&) noexcept = default;

 private:
  int64_t spatial_;
  SpatialSize kernel_;
  MaxPoolOptions options_;
};

class MaxPool1d : public MaxPool {
 public:
  explicit MaxPool1d(const SpatialSize& kernel, MaxPoolOptions options = {})
      : MaxPool(1, kernel, std::move(options)) {}
};

class MaxPool2d : public MaxPool {
 public:
  explicit MaxPool2d(const SpatialSize& kernel, MaxPoolOptions options = {})
      : MaxPool(2, kernel, std::move(options)) {}
};

class MaxPool3d : public MaxPool {
 public:
  explicit MaxPool3d(const SpatialSize& kernel, MaxPoolOptions options = {})
      : MaxPool(3, kernel, std::move(options)) {}
};

struct AvgPoolOptions {
  std::optional<SpatialSize> stride = {};  ///< default: the kernel's size
  SpatialSize padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};  ///< of two and three dimensions only
};

class AvgPool : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  /// Throws Error for a divisor_override of one dimension.
  AvgPool(int64_t spatial, const SpatialSize& kernel, AvgPoolOptions options);
  AvgPool(AvgPool&&) noexcept = default;

 private:
  Tensor pool(const Tensor& x) const;

  int64_t spatial_;
  SpatialSize kernel_;
  AvgPoolOptions options_;
};

class AvgPool1d : public AvgPool {
 public:
  explicit AvgPool1d(const SpatialSize& kernel, AvgPoolOptions options = {})
      : AvgPool(1, kernel, std::move(options)) {}
};

class AvgPool2d : public AvgPool {
 public:
  explicit AvgPool2d(const SpatialSize& kernel, AvgPoolOptions options = {})
      : AvgPool(2, kernel, std::move(options)) {}
};

class AvgPool3d : public AvgPool {
 public:
  explicit AvgPool3d(const SpatialSize& kernel, AvgPoolOptions options = {})
      : AvgPool(3, kernel, std::move(options)) {}
};

/// The mean over windows that divide the input evenly into `output` parts.
class AdaptiveAvgPool : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  AdaptiveAvgPool(int64_t spatial, const SpatialSize& output)
      : spatial_(spatial), output_(output) {}
  AdaptiveAvgPool(AdaptiveAvgPool&&) noexcept = default;

 private:
  int64_t spatial_;
  SpatialSize output_;
};

class AdaptiveAvgPool1d : public AdaptiveAvgPool {
 public:
  explicit AdaptiveAvgPool1d(const SpatialSize& output) : AdaptiveAvgPool(1, output) {}
};

class AdaptiveAvgPool2d : public AdaptiveAvgPool {
 public:
  explicit AdaptiveAvgPool2d(const SpatialSize& output) : AdaptiveAvgPool(2, output) {}
};

class AdaptiveAvgPool3d : public AdaptiveAvgPool {
 public:
  explicit AdaptiveAvgPool3d(const SpatialSize& output) : AdaptiveAvgPool(3, output) {}
};

/// The largest element of each of these windows.
class AdaptiveMaxPool : public Module {
 public:
  Tensor forward(const Tensor& x) const;

 protected:
  AdaptiveMaxPool(int64_t spatial, const SpatialSize& output)
      : spatial_(spatial), output_(output) {}
  AdaptiveMaxPool(AdaptiveMaxPool&&) noexcept = default;

 private:
  int64_t spatial_;
  SpatialSize output_;
};

class AdaptiveMaxPool1d : public AdaptiveMaxPool {
 public:
  explicit AdaptiveMaxPool1d(const SpatialSize& output) : AdaptiveMaxPool(1, output) {}
};

class AdaptiveMaxPool2d : public AdaptiveMaxPool {
 public:
  explicit AdaptiveMaxPool2d(const SpatialSize& output) : AdaptiveMaxPool(2, output) {}
};

class AdaptiveMaxPool3d : public AdaptiveMaxPool {
 public:
  explicit AdaptiveMaxPool3d(const SpatialSize& output) : AdaptiveMaxPool(3, output) {}
};

}  // namespace lockstep::nn
