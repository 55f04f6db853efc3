#include "nn/models/llama.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_of_qkv.h"
#include "core/ops/attention/rotary.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/swiglu_of_halves.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "nn/documents.h"
#include "nn/run_blocks.h"

namespace lockstep::nn {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson rope_scaling_json(const std::monostate&) { return nullptr; }

OrderedJson rope_scaling_json(const LinearRopeScaling& by) {
  return {{"rope_type", "linear"}, {"factor", by.factor}};
}

OrderedJson rope_scaling_json(const Llama3RopeScaling& by) {
  return {{"rope_type", "llama3"},
          {"factor", by.factor},
          {"low_freq_factor", by.low_freq_factor},
          {"high_freq_factor", by.high_freq_factor},
          {"original_max_position_embeddings", by.original_context_length}};
}

OrderedJson rope_scaling_json(const YarnRopeScaling& by) {
  OrderedJson json = {{"rope_type", "yarn"},
                      {"factor", by.factor},
                      {"original_max_position_embeddings", by.original_context_length},
                      {"beta_fast", by.beta_fast},
                      {"beta_slow", by.beta_slow}};
  if (by.attention_factor) json["attention_factor"] = *by.attention_factor;
  return json;
}

}  // namespace

LlamaBlock::LlamaBlock(const LlamaOptions& o)
    : input_layernorm(o.width, o.epsilon),
      q_proj(o.width, o.width, false, matrix_init(o.mup)),
      k_proj(o.width, o.width / o.heads * o.kv_heads, false, matrix_init(o.mup)),
      v_proj(o.width, o.width / o.heads * o.kv_heads, false, matrix_init(o.mup)),
      o_proj(o.width, o.width, false, matrix_init(o.mup, Init::branch_end(o.layers))),
      post_attention_layernorm(o.width, o.epsilon),
      gate_proj(o.width, o.hidden_width, false, matrix_init(o.mup)),
      up_proj(o.width, o.hidden_width, false, matrix_init(o.mup)),
      down_proj(o.hidden_width, o.width, false, matrix_init(o.mup, Init::branch_end(o.layers))),
      qkv_({&q_proj, &k_proj, &v_proj}),
      gate_up_({&gate_proj, &up_proj}),
      heads_(o.heads),
      kv_heads_(o.kv_heads),
      attention_scale_(o.mup.attention_scale(o.width / o.heads)),
      options_hash_(block_options_hash(
          {static_cast<double>(o.heads), static_cast<double>(o.kv_heads), o.epsilon})) {
  register_module("input_layernorm", input_layernorm);
  register_module("self_attn.q_proj", q_proj);
  register_module("self_attn.k_proj", k_proj);
  register_module("self_attn.v_proj", v_proj);
  register_module("self_attn.o_proj", o_proj);
  register_module("post_attention_layernorm", post_attention_layernorm);
  register_module("mlp.gate_proj", gate_proj);
  register_module("mlp.up_proj", up_proj);
  register_module("mlp.down_proj", down_proj);
}

Tensor LlamaBlock::attention(const Tensor& projected, const Tensor& cosine, const Tensor& sine,
                             KvCache* cache, int64_t layer) {
  const int64_t batch = projected.size(0);
  const int64_t length = projected.size(1);
  const Tensor joint = rotary_of_qkv(projected, cosine, sine, heads_, kv_heads_);
  if (cache == nullptr) {
    return attention_of_qkv(joint, heads_, kv_heads_, true, attention_scale_);
  }
  const int64_t depth = projected.size(2) / (heads_ + 2 * kv_heads_);
  const int64_t width = heads_ * depth;
  const std::vector<Tensor> qkv =
      split_with_sizes(joint, {width, kv_heads_ * depth, kv_heads_ * depth}, 2);
  const auto heads = [&](const Tensor& y, int64_t count) {
    return y.view({batch, length, count, depth}).transpose(1, 2);
  };
  const Tensor query = heads(qkv[0], heads_);
  const bool follows = cache->length() > 0;
  const auto [key, value] =
      cache->append(layer, heads(qkv[1], kv_heads_), heads(qkv[2], kv_heads_));
  LS_CHECK(!follows || length == 1, ShapeError,
           "[llama] after the first tokens a cache takes one at a time, got {}.", length);
  const Tensor mixed = scaled_dot_product_attention(query, key, value, {}, 0.0, !follows,
                                                    attention_scale_, heads_ != kv_heads_);
  return mixed.transpose(1, 2).reshape({batch, length, width});
}

Tensor LlamaBlock::forward(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                           KvCache* cache, int64_t layer, const std::vector<int64_t>& documents) {
  const auto pass = [&](const Tensor& input, const Tensor& cosines, const Tensor& sines) {
    return run(input, cosines, sines, cache, layer, documents);
  };
  if (cache != nullptr) {
    return run_forward([&](const Tensor& input) { return pass(input, cosine, sine); }, x);
  }
  const BlockOptions options{mixed_hash(options_hash_, attention_scale_.value_or(0)),
                             documents.empty() ? "" : kWithinDocuments};
  return run_forward(
      [&](const Tensor& input) { return run_block(options, pass, input, cosine, sine); }, x);
}

Tensor LlamaBlock::run(const Tensor& x, const Tensor& cosine, const Tensor& sine, KvCache* cache,
                       int64_t layer, const std::vector<int64_t>& documents) {
  const Tensor projected = qkv_.forward(input_layernorm.forward(x));
  const auto attend = [&](const Tensor& document) {
    const int64_t length = document.size(1);
    return attention(document, cosine.slice(0, 0, length), sine.slice(0, 0, length), cache, layer);
  };
  const Tensor mixed = documents.empty() ? attention(projected, cosine, sine, cache, layer)
                                         : by_documents(projected, documents, attend);
  const auto [normed, middle] = post_attention_layernorm.forward_onto(x, o_proj.forward(mixed));
  return down_proj.forward_onto(middle, swiglu_of_halves(gate_up_.forward(normed)));
}

Llama::Llama(const LlamaOptions& options)
    : embed_tokens(options.vocabulary, options.width),
      norm(options.width, options.epsilon),
      options_(options) {
  set_mup(options.mup);
  register_module("model.embed_tokens", embed_tokens);
  for (int64_t i = 0; i < options.layers; ++i) {
    blocks.push_back(std::make_unique<LlamaBlock>(options));
    register_module(fmt::format("model.layers.{}", i), *blocks.back());
  }
  register_module("model.norm", norm);
  if (!options.tie_embeddings) {
    lm_head = std::make_unique<Linear>(options.width, options.vocabulary, false);
    register_module("lm_head", *lm_head);
  }
  std::tie(cosine_, sine_) = rotary_tables(options.context_length, options.width / options.heads,
                                           options.rope_theta, options.rope_scaling);
}

Tensor Llama::features(const Tensor& tokens, KvCache* cache) {
  return run_forward([&](const Tensor& input) { return run(input, cache, {}); }, tokens);
}

Tensor Llama::features_of_documents(const Tensor& tokens, const std::vector<int64_t>& sizes) {
  check_documents(sizes, tokens.size(0), tokens.size(1));
  return run_forward([&](const Tensor& input) { return run(input, nullptr, sizes); }, tokens);
}

Tensor Llama::run(const Tensor& tokens, KvCache* cache, const std::vector<int64_t>& documents) {
  const int64_t past = cache != nullptr ? cache->length() : 0;
  const int64_t length = tokens.size(1);
  LS_CHECK(past + length <= options_.context_length, ShapeError,
           "[llama] too many positions: expected at most {}, got {}.", options_.context_length,
           past + length);
  const Tensor cosine = cosine_.slice(0, past, past + length);
  const Tensor sine = sine_.slice(0, past, past + length);
  Tensor x = multiplied(embed_tokens.forward(tokens), mup().input_multiplier);
  x = run_blocks(blocks.size(), cache == nullptr ? recompute() : RecomputeOptions(), x,
                 [this, cosine, sine, cache, documents](size_t i, const Tensor& input) {
                   return blocks[i]->forward(input, cosine, sine, cache, static_cast<int64_t>(i),
                                             documents);
                 });
  if (cache != nullptr) cache->advance(length);
  return multiplied(norm.forward(x), mup().features_factor());
}

void Llama::use_multipliers(const Mup& mup) {
  set_mup(mup);
  for (const auto& block : blocks) {
    block->set_attention_scale(mup.attention_scale(options_.width / options_.heads));
  }
}

std::vector<MultipliedRows> Llama::multiplied_rows(const Mup& mup) const {
  const double input = mup.input_multiplier;
  // A classifier that is the embedding has its multiplier, which the norm takes back.
  const double output = lm_head ? mup.features_factor() : mup.features_factor() / input;
  std::vector<MultipliedRows> rows = {{embed_tokens.weight, options_.vocabulary, input},
                                      {norm.weight, options_.width, output}};
  for (const auto& block : blocks) {
    rows.push_back({block->q_proj.weight, options_.width, mup.attention_factor()});
  }
  return rows;
}

std::string Llama::hugging_face_config() const {
  OrderedJson config = {{"model_type", "llama"},
                        {"architectures", {"LlamaForCausalLM"}},
                        {"vocab_size", options_.vocabulary},
                        {"max_position_embeddings", options_.context_length},
                        {"hidden_size", options_.width},
                        {"intermediate_size", options_.hidden_width},
                        {"num_hidden_layers", options_.layers},
                        {"num_attention_heads", options_.heads},
                        {"num_key_value_heads", options_.kv_heads},
                        {"head_dim", options_.width / options_.heads},
                        {"rms_norm_eps", options_.epsilon},
                        {"rope_theta", options_.rope_theta},
                        {"hidden_act", "silu"},
                        {"attention_bias", false},
                        {"mlp_bias", false},
                        {"tie_word_embeddings", options_.tie_embeddings}};
  const OrderedJson scaling =
      std::visit([](const auto& by) { return rope_scaling_json(by); }, options_.rope_scaling);
  if (!scaling.is_null()) config["rope_scaling"] = scaling;
  return config.dump(1) + "\n";
}

}  // namespace lockstep::nn
