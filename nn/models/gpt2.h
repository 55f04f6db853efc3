#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nn/language_model.h"
#include "nn/layers.h"

namespace lockstep::nn {

/// Shape of a GPT-2 (Radford et al. 2019): learned positions, LayerNorm before each branch,
/// GELU (tanh form), classifier tied to the token embedding.
struct Gpt2Options {
  int64_t vocabulary = 256;
  int64_t context_length = 1024;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  double dropout = 0;  ///< applied after the embedding, in attention and at the end of each branch
  double epsilon = 1e-5;
  Mup mup = {};  ///< of the initialisation and the forward pass
};

class Gpt2Block : public Module {
 public:
  explicit Gpt2Block(const Gpt2Options& options);
  /// x [batch, length, width] -> the same shape.
  /// `documents`, if not empty, are sizes of documents (nn/documents.h), without a cache.
  Tensor forward(const Tensor& x, KvCache* cache, int64_t layer,
                 const std::vector<int64_t>& documents = {});

  /// `scale` of the attention; nothing: 1 / sqrt(elements of a head).
  void set_attention_scale(std::optional<double> scale) { attention_scale_ = scale; }

  LayerNorm ln_1;
  Linear c_attn;  ///< projects to queries, keys and values, concatenated
  Linear attn_c_proj;
  LayerNorm ln_2;
  Linear c_fc;
  Linear mlp_c_proj;

 private:
  Tensor run(const Tensor& x, KvCache* cache, int64_t layer, const std::vector<int64_t>& documents);
  /// The input of attn_c_proj: the attention's result for all heads, concatenated. `joint` is what
  /// c_attn gives.
  Tensor attention(const Tensor& joint, KvCache* cache, int64_t layer);

  int64_t heads_;
  double dropout_;
  std::optional<double> attention_scale_;
  uint64_t options_hash_;  ///< of those that stay as they are; the attention's scale may change
};

class Gpt2 final : public LanguageModel {
 public:
  explicit Gpt2(const Gpt2Options& options);

  Tensor features(const Tensor& tokens, KvCache* cache = nullptr) override;
  Tensor features_of_documents(const Tensor& tokens, const std::vector<int64_t>& sizes) override;
  std::vector<Module*> sequence() const override { return modules_of(h); }
  const Tensor& classifier() const override { return wte.weight; }
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t context_length() const override { return options_.context_length; }
  int64_t layers() const override { return options_.layers; }
  int64_t attention_width() const override { return options_.width; }
  std::vector<StoredParameter> stored_parameters() const override;
  std::string hugging_face_config() const override;
  void use_multipliers(const Mup& mup) override;
  std::vector<MultipliedRows> multiplied_rows(const Mup& mup) const override;
  const Gpt2Options& options() const { return options_; }

  Embedding wte;
  Embedding wpe;
  std::vector<std::unique_ptr<Gpt2Block>> h;
  LayerNorm ln_f;

 private:
  Tensor run(const Tensor& tokens, KvCache* cache, const std::vector<int64_t>& documents);

  Gpt2Options options_;
};

}  // namespace lockstep::nn
