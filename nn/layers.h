#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>

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
  bool zeros = false;  ///< zeros instead

  /// For the last projection of a residual branch: a model of `layers` layers sums 2 * layers
  /// branches, so the deviation is divided by sqrt(2 * layers) (Radford et al. 2019).
  static Init branch_end(int64_t layers);
};

struct LinearOptions {
  bool bias = true;
  bool zero_bias = false;  ///< starts the bias with 0 instead of random numbers
};

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;   ///< the adapter's result is multiplied by alpha / rank
  double dropout = 0;  ///< probability of zeroing an element of its input, while training
};
struct LoraAdapter;

/// y = x W^T + b. x [..., in], W [out, in], b [out].
class Linear : public Module {
 public:
  /// With PyTorch's initialisation: weight and bias uniform within +-1 / sqrt(in).
  Linear(int64_t in, int64_t out, LinearOptions options = {});
  /// With a bias or without, and `init`, by default GPT-2's.
  Linear(int64_t in, int64_t out, bool bias, Init init = {});
  Linear(Linear&& other) noexcept;
  ~Linear() override;
  Tensor forward(const Tensor& x) const;
  /// residual + forward(x), computed in one pass.
  Tensor forward_onto(const Tensor& residual, const Tensor& x) const;
  /// The gelu (tanh form) of forward(x), for `forward_of_gelu` of the next layer.
  Gelu forward_gelu(const Tensor& x) const;
  /// forward(x.value), plus the residual if given.
  Tensor forward_of_gelu(const Gelu& x, OptionalTensor residual = {}) const;

  /// Adds a low-rank adapter (LoRA, Hu et al. 2021), whose result forward passes add to theirs. Its
  /// parameters lora_A.weight and lora_B.weight are trained whether or not the layer's own are;
  /// all layers of a model: nn/adapters/lora.h. Throws Error where there is one already.
  void add_lora(const LoraOptions& options);
  /// Adds what the adapter has learnt to the weight, and removes it. Without one does nothing.
  void merge_lora();
  /// The adapter, or null.
  const LoraAdapter* lora() const { return lora_.get(); }

  Tensor weight;
  Tensor bias;  ///< undefined when there is none

 private:
  std::unique_ptr<LoraAdapter> lora_;
};

/// alpha / rank * B A x: a change of a linear layer's weight of low rank. Begins with B = 0, so
/// that it changes nothing, and A uniform within +-1 / sqrt(in).
struct LoraAdapter {
  LoraAdapter(int64_t in, int64_t out, const LoraOptions& options);
  /// x [..., in] to [..., out].
  Tensor forward(const Tensor& x) const;

  LoraOptions options;
  double scale;  ///< alpha / rank
  Linear a;      ///< [rank, in]; child "lora_A" of the layer
  Linear b;      ///< [out, rank]; child "lora_B"
};

/// weight + scale * b a: the weight [out, in] of a layer whose adapter has the matrices a [rank,
/// in] and b [out, rank].
Tensor merged_weight(const Tensor& weight, const Tensor& a, const Tensor& b, double scale);

/// y[..., o] = x1[...] W[o] x2[...]^T + b[o]. x1 [..., in1], x2 [..., in2], W [out, in1, in2], b
/// [out]; weight and bias uniform within +-1 / sqrt(in1).
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1, int64_t in2, int64_t out, LinearOptions options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2) const;

  Tensor weight;
  Tensor bias;  ///< undefined when there is none
};

struct EmbeddingOptions {
  /// A row that starts as zeros and gets no gradient; negative: counted from the end.
  std::optional<int64_t> padding_idx = {};
  bool scale_grad_by_freq = false;  ///< divides a row's gradient by how often it was looked up
};

/// y = W[ids]. ids [...] of integers below `count`, W [count, width], y [..., width].
class Embedding : public Module {
 public:
  /// With `init`, by default GPT-2's.
  Embedding(int64_t count, int64_t width, Init init = {});
  /// With PyTorch's initialisation: normal with mean 0 and variance 1.
  Embedding(int64_t count, int64_t width, EmbeddingOptions options);
  /// With `weight` [count, width] itself, which is not trained unless `freeze` is false.
  static Embedding from_pretrained(Tensor weight, bool freeze = true,
                                   EmbeddingOptions options = {});
  Tensor forward(const Tensor& ids) const;

  Tensor weight;

 private:
  Embedding(Tensor values, EmbeddingOptions options);

  int64_t padding_idx_ = -1;  ///< -1: there is none
  bool scale_grad_by_freq_ = false;
};

/// How EmbeddingBag combines the rows of a bag; the numbers are ATen's.
enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

struct EmbeddingBagOptions {
  BagMode mode = BagMode::kMean;
  std::optional<int64_t> padding_idx = {};  ///< a row that is skipped
  bool scale_grad_by_freq = false;
  bool include_last_offset = false;  ///< the last offset is the end of the last bag
};

/// Looks up rows of W [count, width] and combines them by bag
/// (core/ops/index/embedding_bag.h). Initialised as Embedding with options is.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t count, int64_t width, EmbeddingBagOptions options = {});
  /// ids [bags, n], or ids [n] with the `offsets` [bags] at which each bag begins: [bags, width].
  /// `per_sample_weights`, of the shape of ids, scale the rows of a sum.
  Tensor forward(const Tensor& ids, OptionalTensor offsets = {},
                 OptionalTensor per_sample_weights = {}) const;

  Tensor weight;

 private:
  EmbeddingBagOptions options_;
};

// Norms compute in the dtype of x, at least f32, and return the dtype in which the products behind
// them read the result: in an autocast region the region's, else that of x.

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< has a weight
  bool bias = true;                ///< has a bias, if it has a weight
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimensions
/// (Ba, Kiros & Hinton 2016). Initialised with weight 1, bias 0.
class LayerNorm : public Module {
 public:
  /// Over the last dimension.
  LayerNorm(int64_t width, double epsilon);
  explicit LayerNorm(int64_t width, LayerNormOptions options = {});
  /// Over as many of the last dimensions as `shape` has, which are of these sizes.
  explicit LayerNorm(std::initializer_list<int64_t> shape, LayerNormOptions options = {});
  explicit LayerNorm(IntList shape, LayerNormOptions options = {});
  Tensor forward(const Tensor& x) const;
  /// forward(residual + branch) and residual + branch, in one pass.
  NormedSum forward_onto(const Tensor& residual, const Tensor& branch) const;

  Tensor weight;  ///< undefined without elementwise_affine
  Tensor bias;    ///< undefined when there is none

 private:
  Dims shape_;
  double epsilon_;
};

struct RMSNormOptions {
  std::optional<double> eps = {};  ///< default: the machine epsilon of the input's dtype
  bool elementwise_affine = true;  ///< has a weight
};

/// y = x / sqrt(mean(x^2) + epsilon) * weight over the last dimensions (Zhang & Sennrich 2019).
class RMSNorm : public Module {
 public:
  /// Over the last dimension.
  RMSNorm(int64_t width, double epsilon);
  explicit RMSNorm(int64_t width, RMSNormOptions options = {});
  /// Over as many of the last dimensions as `shape` has, which are of these sizes.
  explicit RMSNorm(std::initializer_list<int64_t> shape, RMSNormOptions options = {});
  explicit RMSNorm(IntList shape, RMSNormOptions options = {});
  Tensor forward(const Tensor& x) const;
  /// forward(residual + branch) and residual + branch, in one pass.
  NormedSum forward_onto(const Tensor& residual, const Tensor& branch) const;

  Tensor weight;  ///< undefined without elementwise_affine

 private:
  Dims shape_;
  std::optional<double> epsilon_;
};

}  // namespace lockstep::nn
