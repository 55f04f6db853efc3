#pragma once

#include <cstdint>
#include <optional>

#include "nn/kv_cache.h"
#include "nn/layers.h"

namespace lockstep::nn {

/// Which keys a query may not attend to, as PyTorch's modules say it: a bool mask is true where
/// attention is not allowed (scaled_dot_product_attention takes the opposite), a floating one is
/// added to the scores. What is given is combined; a query that may attend to nothing gets zeros.
struct AttentionMasks {
  Tensor key_padding_mask = {};  ///< [batch, keys], without a batch [keys]
  Tensor attn_mask = {};         ///< [queries, keys] or [batch * heads, queries, keys]
  /// Query i may attend to keys up to i; with a cache, also to all that were there before.
  bool is_causal = false;
};

/// The result of an attention, and its weights where they were asked for.
struct Attended {
  Tensor output;
  Tensor weights;
};

/// Which weights an attention returns: none, or after softmax and dropout [batch, queries, keys],
/// the mean over heads, or [batch, heads, queries, keys]. Without them it is faster.
enum class AttentionWeights : uint8_t { kNone, kMean, kPerHead };

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the attention's weights, in training
  bool bias = true;
  std::optional<int64_t> kdim = {};  ///< width of the keys; default: embed_dim
  std::optional<int64_t> vdim = {};  ///< width of the values; default: embed_dim
  bool batch_first = false;  ///< inputs [batch, length, width] instead of [length, batch, width]
};

/// Attention of several heads (Vaswani et al. 2017), with PyTorch's parameters: queries, keys and
/// values are projected, attended to per head, and the heads' results projected together.
///
/// in_proj_weight is Xavier uniform, biases are 0, out_proj.weight is that of a Linear.
class MultiheadAttention : public Module {
 public:
  /// Throws ShapeError unless `heads` divides `embed_dim`.
  MultiheadAttention(int64_t embed_dim, int64_t heads, MultiheadAttentionOptions options = {});

  /// query [batch, queries, embed_dim], key [batch, keys, kdim], value [batch, keys, vdim]; the
  /// batch second unless batch_first, or missing in all three. The output has the query's shape.
  ///
  /// With a `cache`, keys and values are appended to those of `layer` (nn/kv_cache.h), and the
  /// queries attend to all of them, so that tokens can be generated one by one. The caller advances
  /// the cache when all layers have run. Masks are over all keys then.
  Attended forward(const Tensor& query, const Tensor& key, const Tensor& value,
                   const AttentionMasks& masks = {},
                   AttentionWeights weights = AttentionWeights::kNone, KvCache* cache = nullptr,
                   int64_t layer = 0) const;

  Tensor in_proj_weight;  ///< [3 embed_dim, embed_dim]; undefined where kdim or vdim differ
  Tensor q_proj_weight;   ///< [embed_dim, embed_dim]; these three only where kdim or vdim differ
  Tensor k_proj_weight;   ///< [embed_dim, kdim]
  Tensor v_proj_weight;   ///< [embed_dim, vdim]
  Tensor in_proj_bias;    ///< [3 embed_dim]; undefined without `bias`
  Linear out_proj;

 private:
  struct Call {
    const AttentionMasks& masks;
    AttentionWeights weights;
    KvCache* cache;
    int64_t layer;
  };
  struct Projected {
    Tensor query;  ///< each [batch, heads, length, depth]
    Tensor key;
    Tensor value;
  };
  Attended attend(const Tensor& query, const Tensor& key, const Tensor& value,
                  const Call& call) const;
  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;

  int64_t embed_dim_;
  int64_t heads_;
  double dropout_;
  bool batch_first_;
};

}  // namespace lockstep::nn
