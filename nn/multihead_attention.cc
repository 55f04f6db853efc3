#include "nn/multihead_attention.h"

#include <cmath>
#include <tuple>

#include "core/base/check.h"
#include "core/ops/attention/attention.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "nn/attention_mask.h"

namespace lockstep::nn {

namespace {

FillValues xavier_of(int64_t out, int64_t in) {
  return fill_uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t heads,
                                       MultiheadAttentionOptions options)
    : out_proj(embed_dim, embed_dim, {.bias = options.bias, .zero_bias = true}),
      embed_dim_(embed_dim),
      heads_(heads),
      dropout_(options.dropout),
      batch_first_(options.batch_first) {
  LS_CHECK(heads > 0 && embed_dim % heads == 0, ShapeError,
           "[multihead_attention] expected a number of heads that divides {}, got {}.", embed_dim,
           heads);
  const int64_t kdim = options.kdim.value_or(embed_dim);
  const int64_t vdim = options.vdim.value_or(embed_dim);
  const auto projection = [&](const char* name, int64_t out, int64_t in) {
    return register_parameter(name, initial_values({out, in}, xavier_of(out, in)));
  };
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = projection("in_proj_weight", 3 * embed_dim, embed_dim);
  } else {
    q_proj_weight = projection("q_proj_weight", embed_dim, embed_dim);
    k_proj_weight = projection("k_proj_weight", embed_dim, kdim);
    v_proj_weight = projection("v_proj_weight", embed_dim, vdim);
  }
  if (options.bias) {
    in_proj_bias =
        register_parameter("in_proj_bias", initial_values({3 * embed_dim}, fill_with(0)));
  }
  register_module("out_proj", out_proj);
}

Attended MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttentionMasks& masks, AttentionWeights weights,
                                     KvCache* cache, int64_t layer) const {
  const Call call{masks, weights, cache, layer};
  if (weights != AttentionWeights::kNone) {
    return run_forward(
        [&](const Tensor& q, const Tensor& k, const Tensor& v) { return attend(q, k, v, call); },
        query, key, value);
  }
  return {run_forward([&](const Tensor& q, const Tensor& k,
                          const Tensor& v) { return attend(q, k, v, call).output; },
                      query, key, value),
          {}};
}

MultiheadAttention::Projected MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                          const Tensor& value) const {
  std::vector<Tensor> parts;
  if (in_proj_weight.defined() && query.is_same(key) && key.is_same(value)) {
    parts = linear(query, in_proj_weight, in_proj_bias).split(embed_dim_, 2);
  } else {
    const std::vector<Tensor> weights =
        in_proj_weight.defined() ? in_proj_weight.split(embed_dim_)
                                 : std::vector{q_proj_weight, k_proj_weight, v_proj_weight};
    const std::vector<Tensor> biases =
        in_proj_bias.defined() ? in_proj_bias.split(embed_dim_) : std::vector<Tensor>(3);
    parts = {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
             linear(value, weights[2], biases[2])};
  }
  const auto heads = [this](const Tensor& y) {
    return y.view({y.size(0), y.size(1), heads_, embed_dim_ / heads_}).transpose(1, 2);
  };
  return {heads(parts[0]), heads(parts[1]), heads(parts[2])};
}

Attended MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Call& call) const {
  const bool batched = query.dim() == 3;
  LS_CHECK((batched || query.dim() == 2) && key.dim() == query.dim() && value.dim() == query.dim(),
           ShapeError,
           "[multihead_attention] expected inputs of three dimensions, or of two without a batch, "
           "got {}, {} and {}.",
           query.shape(), key.shape(), value.shape());
  const bool self = query.is_same(key) && key.is_same(value);
  const auto batch_first = [&](const Tensor& x) {
    if (!batched) return x.unsqueeze(0);
    return batch_first_ ? x : x.transpose(0, 1);
  };
  const Tensor rows = batch_first(query);
  Projected p =
      self ? project(rows, rows, rows) : project(rows, batch_first(key), batch_first(value));
  if (call.cache != nullptr) {
    std::tie(p.key, p.value) = call.cache->append(call.layer, p.key, p.value);
  }
  const ScoresShape scores{rows.size(0), heads_, p.query.size(2), p.key.size(2)};
  const bool only_causal = call.masks.is_causal && !call.masks.key_padding_mask.defined() &&
                           !call.masks.attn_mask.defined() && scores.queries == scores.keys;
  const Tensor mask = only_causal ? Tensor() : combined_mask(call.masks, scores, p.query);
  const double dropout_p = is_training() ? dropout_ : 0.0;
  Tensor mixed;
  Tensor weights;
  if (call.weights == AttentionWeights::kNone) {
    mixed = scaled_dot_product_attention(p.query, p.key, p.value, mask, dropout_p, only_causal);
  } else {
    std::tie(mixed, weights) =
        _scaled_dot_product_attention_math(p.query, p.key, p.value, mask, dropout_p, only_causal);
    if (call.weights == AttentionWeights::kMean) weights = weights.mean({1});
  }
  const Tensor joined =
      out_proj.forward(mixed.transpose(1, 2).reshape({scores.batch, scores.queries, embed_dim_}));
  if (!batched) return {joined.squeeze(0), weights.defined() ? weights.squeeze(0) : Tensor()};
  return {batch_first_ ? joined : joined.transpose(0, 1), weights};
}

}  // namespace lockstep::nn
