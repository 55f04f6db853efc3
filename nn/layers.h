#pragma once

#include <cstdint>

#include "core/ops/matmul/fused_linear.h"
#include "core/ops/norm/stream_norm.h"
#include "nn/module.h"

namespace lockstep::nn {

/// Initialisation of a weight: normal with mean 0, drawn from the default generator.
struct Init {
  double deviation = 0.02;  ///< standard deviation; the default is GPT-2's
  /// Uniform within +-1 / sqrt(in) instead, for weight and bias: PyTorch's default for linear
  /// layers.
  bool uniform = false;

  /// For the last projection of a residual branch: a model of `layers` layers sums 2 * layers
  /// branches, so the deviation is divided by sqrt(2 * layers) (Radford et al. 2019).
  static Init branch_end(int64_t layers);
};

/// y = x W^T + b. x [..., in], W [out, in], b [out].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias, Init init = {});
  Tensor forward(const Tensor& x) const;
  /// residual + forward(x), computed in one pass.
  Tensor forward_onto(const Tensor& residual, const Tensor& x) const;
  /// The gelu (tanh form) of forward(x), for `forward_of_gelu` of the next layer.
  Gelu forward_gelu(const Tensor& x) const;
  /// forward(x.value), plus the residual if given.
  Tensor forward_of_gelu(const Gelu& x, OptionalTensor residual = {}) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none
};

/// y = W[ids]. ids [...] of integers below `count`, W [count, width], y [..., width].
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width, Init init = {});
  Tensor forward(const Tensor& ids) const;

  Tensor weight;
};

// Norms compute in the dtype of x, at least f32, and return the dtype in which the products behind
// them read the result: in an autocast region the region's, else that of x.

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension
/// (Ba, Kiros & Hinton 2016). Initialised with weight 1, bias 0.
class LayerNorm : public Module {
 public:
  LayerNorm(int64_t width, double epsilon);
  Tensor forward(const Tensor& x) const;
  /// forward(residual + branch) and residual + branch, in one pass.
  NormedSum forward_onto(const Tensor& residual, const Tensor& branch) const;

  Tensor weight;
  Tensor bias;

 private:
  double epsilon_;
};

/// y = x / sqrt(mean(x^2) + epsilon) * weight over the last dimension (Zhang & Sennrich 2019).
class RMSNorm : public Module {
 public:
  RMSNorm(int64_t width, double epsilon);
  Tensor forward(const Tensor& x) const;
  /// forward(residual + branch) and residual + branch, in one pass.
  NormedSum forward_onto(const Tensor& residual, const Tensor& branch) const;

  Tensor weight;

 private:
  double epsilon_;
};

}  // namespace lockstep::nn
