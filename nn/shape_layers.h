#pragma once

#include <cstdint>
#include <initializer_list>

#include "nn/module.h"

namespace lockstep::nn {

// Layers that rearrange elements.

/// Returns its input.
class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) const;
};

/// Makes one dimension of those from `start_dim` to `end_dim`; by default all but the batch.
class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t start_dim_;
  int64_t end_dim_;
};

/// Splits dimension `dim` into several of `sizes`, one of which may be -1.
class Unflatten : public Module {
 public:
  Unflatten(int64_t dim, std::initializer_list<int64_t> sizes) : dim_(dim), sizes_(sizes) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t dim_;
  Dims sizes_;
};

/// [..., C r^2, H, W] -> [..., C, H r, W r] (core/ops/view/rearrange.h).
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : factor_(upscale_factor) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t factor_;
};

/// The inverse of PixelShuffle.
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : factor_(downscale_factor) {}
  Tensor forward(const Tensor& x) const;

 private:
  int64_t factor_;
};

}  // namespace lockstep::nn
