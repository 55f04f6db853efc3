#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nn/joint_linear.h"
#include "nn/language_model.h"
#include "nn/layers.h"
#include "nn/rotary.h"

namespace lockstep::nn {

/// Shape of a Llama (Touvron et al. 2023): rotary positions, RMSNorm before each branch, SwiGLU,
/// grouped key/value heads, no biases.
struct LlamaOptions {
  int64_t vocabulary = 256;
  int64_t context_length = 1024;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t kv_heads = 12;  ///< each is shared by heads / kv_heads query heads
  int64_t width = 768;
  int64_t hidden_width = 2048;
  double rope_theta = 10000;
  RopeScaling rope_scaling = {};
  double epsilon = 1e-5;
  bool tie_embeddings = false;
  Mup mup = {};  ///< of the initialisation and the forward pass
};

class LlamaBlock : public Module {
 public:
  explicit LlamaBlock(const LlamaOptions& options);
  /// x [batch, length, width] -> the same shape; cosine and sine [length, depth / 2] belong to its
  /// positions.
  /// `documents`, if not empty, are sizes of documents (nn/documents.h), without a cache.
  Tensor forward(const Tensor& x, const Tensor& cosine, const Tensor& sine, KvCache* cache,
                 int64_t layer, const std::vector<int64_t>& documents = {});

  /// `scale` of the attention; nothing: 1 / sqrt(elements of a head).
  void set_attention_scale(std::optional<double> scale) { attention_scale_ = scale; }

  RMSNorm input_layernorm;
  Linear q_proj;
  Linear k_proj;
  Linear v_proj;
  Linear o_proj;
  RMSNorm post_attention_layernorm;
  Linear gate_proj;
  Linear up_proj;
  Linear down_proj;

 private:
  Tensor run(const Tensor& x, const Tensor& cosine, const Tensor& sine, KvCache* cache,
             int64_t layer, const std::vector<int64_t>& documents);
  /// The input of o_proj: the attention's result for all heads, concatenated. `projected` is what
  /// the joint projection gives, before rotary positions.
  Tensor attention(const Tensor& projected, const Tensor& cosine, const Tensor& sine,
                   KvCache* cache, int64_t layer);

  JointLinear qkv_;      ///< of q_proj, k_proj and v_proj
  JointLinear gate_up_;  ///< of gate_proj and up_proj
  int64_t heads_;
  int64_t kv_heads_;
  std::optional<double> attention_scale_;
  uint64_t options_hash_;  ///< of those that stay as they are; the attention's scale may change
};

class Llama final : public LanguageModel {
 public:
  explicit Llama(const LlamaOptions& options);

  Tensor features(const Tensor& tokens, KvCache* cache = nullptr) override;
  Tensor features_of_documents(const Tensor& tokens, const std::vector<int64_t>& sizes) override;
  std::vector<Module*> sequence() const override { return modules_of(blocks); }
  const Tensor& classifier() const override {
    return lm_head ? lm_head->weight : embed_tokens.weight;
  }
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t context_length() const override { return options_.context_length; }
  int64_t layers() const override { return options_.layers; }
  int64_t attention_width() const override { return options_.width; }
  std::string hugging_face_config() const override;
  void use_multipliers(const Mup& mup) override;
  std::vector<MultipliedRows> multiplied_rows(const Mup& mup) const override;
  const LlamaOptions& options() const { return options_; }

  Embedding embed_tokens;
  std::vector<std::unique_ptr<LlamaBlock>> blocks;
  RMSNorm norm;
  std::unique_ptr<Linear> lm_head;  ///< null when tied to embed_tokens

 private:
  Tensor run(const Tensor& tokens, KvCache* cache, const std::vector<int64_t>& documents);

  LlamaOptions options_;
  Tensor cosine_;  ///< [context_length, depth / 2]
  Tensor sine_;
};

}  // namespace lockstep::nn
