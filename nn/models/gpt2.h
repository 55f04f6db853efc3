#pragma once

#include <memory>
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
};

class Gpt2Block : public Module {
 public:
  explicit Gpt2Block(const Gpt2Options& options);
  /// x [batch, length, width] -> the same shape.
  Tensor forward(const Tensor& x, KvCache* cache, int64_t layer);

  LayerNorm ln_1;
  Linear c_attn;  ///< projects to queries, keys and values, concatenated
  Linear attn_c_proj;
  LayerNorm ln_2;
  Linear c_fc;
  Linear mlp_c_proj;

 private:
  Tensor run(const Tensor& x, KvCache* cache, int64_t layer);
  /// The input of attn_c_proj: the attention's result for all heads, concatenated.
  Tensor attention(const Tensor& x, KvCache* cache, int64_t layer);

  int64_t heads_;
  double dropout_;
};

class Gpt2 final : public LanguageModel {
 public:
  explicit Gpt2(const Gpt2Options& options);

  Tensor features(const Tensor& tokens, KvCache* cache = nullptr) override;
  std::vector<Module*> sequence() const override { return modules_of(h); }
  const Tensor& classifier() const override { return wte.weight; }
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t context_length() const override { return options_.context_length; }
  int64_t layers() const override { return options_.layers; }
  int64_t attention_width() const override { return options_.width; }
  std::vector<StoredParameter> stored_parameters() const override;
  std::string hugging_face_config() const override;
  const Gpt2Options& options() const { return options_; }

  Embedding wte;
  Embedding wpe;
  std::vector<std::unique_ptr<Gpt2Block>> h;
  LayerNorm ln_f;

 private:
  Tensor run(const Tensor& tokens, KvCache* cache);

  Gpt2Options options_;
};

}  // namespace lockstep::nn
