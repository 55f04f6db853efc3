#include "nn/models/gpt2.h"

#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_of_qkv.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/view.h"
#include "nn/adapters/lora.h"
#include "nn/documents.h"
#include "nn/run_blocks.h"

namespace lockstep::nn {

Gpt2Block::Gpt2Block(const Gpt2Options& o)
    : ln_1(o.width, o.epsilon),
      c_attn(o.width, 3 * o.width, true, matrix_init(o.mup)),
      attn_c_proj(o.width, o.width, true, matrix_init(o.mup, Init::branch_end(o.layers))),
      ln_2(o.width, o.epsilon),
      c_fc(o.width, 4 * o.width, true, matrix_init(o.mup)),
      mlp_c_proj(4 * o.width, o.width, true, matrix_init(o.mup, Init::branch_end(o.layers))),
      heads_(o.heads),
      dropout_(o.dropout),
      attention_scale_(o.mup.attention_scale(o.width / o.heads)),
      options_hash_(block_options_hash({static_cast<double>(o.heads), o.dropout, o.epsilon})) {
  register_module("ln_1", ln_1);
  register_module("attn.c_attn", c_attn);
  register_module("attn.c_proj", attn_c_proj);
  register_module("ln_2", ln_2);
  register_module("mlp.c_fc", c_fc);
  register_module("mlp.c_proj", mlp_c_proj);
}

Tensor Gpt2Block::attention(const Tensor& joint, KvCache* cache, int64_t layer) {
  const int64_t batch = joint.size(0);
  const int64_t length = joint.size(1);
  const int64_t width = joint.size(2) / 3;
  const double dropout_p = is_training() ? dropout_ : 0.0;
  if (cache == nullptr && dropout_p == 0) {
    return attention_of_qkv(joint, heads_, heads_, true, attention_scale_);
  }
  const std::vector<Tensor> qkv = joint.split(width, 2);
  const auto heads = [&](const Tensor& y) {
    return y.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  };
  const Tensor query = heads(qkv[0]);
  Tensor key = heads(qkv[1]);
  Tensor value = heads(qkv[2]);
  const bool follows = cache != nullptr && cache->length() > 0;
  if (cache != nullptr) std::tie(key, value) = cache->append(layer, key, value);
  LS_CHECK(!follows || length == 1, ShapeError,
           "[gpt2] after the first tokens a cache takes one at a time, got {}.", length);
  const Tensor mixed =
      scaled_dot_product_attention(query, key, value, {}, dropout_p, !follows, attention_scale_);
  return mixed.transpose(1, 2).reshape({batch, length, width});
}

Tensor Gpt2Block::forward(const Tensor& x, KvCache* cache, int64_t layer,
                          const std::vector<int64_t>& documents) {
  const auto pass = [&](const Tensor& input) { return run(input, cache, layer, documents); };
  if (cache != nullptr) return run_forward(pass, x);
  const BlockOptions options{mixed_hash(options_hash_, attention_scale_.value_or(0)),
                             documents.empty() ? "" : kWithinDocuments};
  return run_forward([&](const Tensor& input) { return run_block(options, pass, input); }, x);
}

Tensor Gpt2Block::run(const Tensor& x, KvCache* cache, int64_t layer,
                      const std::vector<int64_t>& documents) {
  const bool drops = is_training() && dropout_ > 0;
  const Tensor joint = c_attn.forward(ln_1.forward(x));
  const auto attend = [&](const Tensor& of) { return attention(of, cache, layer); };
  const Tensor mixed = attn_c_proj.forward(
      documents.empty() ? attend(joint) : by_documents(joint, documents, attend));
  const auto [normed, middle] = ln_2.forward_onto(x, dropout(mixed, dropout_, drops));
  const Gelu hidden = c_fc.forward_gelu(normed);
  return drops ? middle + dropout(mlp_c_proj.forward_of_gelu(hidden), dropout_, true)
               : mlp_c_proj.forward_of_gelu(hidden, middle);
}

Gpt2::Gpt2(const Gpt2Options& options)
    : wte(options.vocabulary, options.width),
      wpe(options.context_length, options.width),
      ln_f(options.width, options.epsilon),
      options_(options) {
  set_mup(options.mup);
  register_module("wte", wte);
  register_module("wpe", wpe);
  for (int64_t i = 0; i < options.layers; ++i) {
    h.push_back(std::make_unique<Gpt2Block>(options));
    register_module(fmt::format("h.{}", i), *h.back());
  }
  register_module("ln_f", ln_f);
}

Tensor Gpt2::features(const Tensor& tokens, KvCache* cache) {
  return run_forward([&](const Tensor& input) { return run(input, cache, {}); }, tokens);
}

Tensor Gpt2::features_of_documents(const Tensor& tokens, const std::vector<int64_t>& sizes) {
  check_documents(sizes, tokens.size(0), tokens.size(1));
  return run_forward([&](const Tensor& input) { return run(input, nullptr, sizes); }, tokens);
}

Tensor Gpt2::run(const Tensor& tokens, KvCache* cache, const std::vector<int64_t>& documents) {
  const int64_t past = cache != nullptr ? cache->length() : 0;
  const int64_t length = tokens.size(1);
  LS_CHECK(past + length <= options_.context_length, ShapeError,
           "[gpt2] too many positions: expected at most {}, got {}.", options_.context_length,
           past + length);
  const Tensor positions =
      documents.empty()
          ? wpe.weight.slice(0, past, past + length)
          : wpe.forward(positions_in_documents(documents, tokens.size(0), length, tokens.device()));
  Tensor x = dropout(multiplied(wte.forward(tokens) + positions, mup().input_multiplier),
                     options_.dropout, is_training());
  x = run_blocks(h.size(), cache == nullptr ? recompute() : RecomputeOptions(), x,
                 [this, cache, documents](size_t i, const Tensor& input) {
                   return h[i]->forward(input, cache, static_cast<int64_t>(i), documents);
                 });
  if (cache != nullptr) cache->advance(length);
  return multiplied(ln_f.forward(x), mup().features_factor());
}

std::vector<StoredParameter> Gpt2::stored_parameters() const {
  std::vector<StoredParameter> stored;
  for (const NamedParameter& parameter : named_parameters()) {
    const bool projection = parameter.name.find(".c_") != std::string::npos &&
                            parameter.name.ends_with(".weight") &&
                            !is_lora_parameter(parameter.name);
    stored.push_back({parameter.name, parameter.tensor, projection});
  }
  return stored;
}

void Gpt2::use_multipliers(const Mup& mup) {
  set_mup(mup);
  for (const auto& block : h) {
    block->set_attention_scale(mup.attention_scale(options_.width / options_.heads));
  }
}

std::vector<MultipliedRows> Gpt2::multiplied_rows(const Mup& mup) const {
  // The classifier is the embedding, whose multiplier the last norm takes back.
  const double input = mup.input_multiplier, output = mup.features_factor() / input;
  std::vector<MultipliedRows> rows = {{wte.weight, options_.vocabulary, input},
                                      {wpe.weight, options_.context_length, input},
                                      {ln_f.weight, options_.width, output},
                                      {ln_f.bias, options_.width, output}};
  for (const auto& block : h) {  // the queries' rows
    rows.push_back({block->c_attn.weight, options_.width, mup.attention_factor()});
    rows.push_back({block->c_attn.bias, options_.width, mup.attention_factor()});
  }
  return rows;
}

std::string Gpt2::hugging_face_config() const {
  const nlohmann::ordered_json config = {{"model_type", "gpt2"},
                                         {"architectures", {"GPT2LMHeadModel"}},
                                         {"vocab_size", options_.vocabulary},
                                         {"n_positions", options_.context_length},
                                         {"n_ctx", options_.context_length},
                                         {"n_embd", options_.width},
                                         {"n_layer", options_.layers},
                                         {"n_head", options_.heads},
                                         {"activation_function", "gelu_new"},
                                         {"resid_pdrop", options_.dropout},
                                         {"embd_pdrop", options_.dropout},
                                         {"attn_pdrop", options_.dropout},
                                         {"layer_norm_epsilon", options_.epsilon},
                                         {"tie_word_embeddings", true}};
  return config.dump(1) + "\n";
}

}  // namespace lockstep::nn
