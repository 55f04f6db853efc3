#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

/// Queries, and keys, of a block of scores. The backward pass of heads of 64 then works in 240 KiB,
/// which an L2 cache holds. Blocks of 128 queries in the forward pass were as fast for up to 256
/// queries and 3 to 6 % faster for 512 and more, too little for a second size.
inline constexpr int64_t kAttentionBlock = 64;

/// Sizes and options of one call of attention.
struct AttentionProblem {
  int64_t batch;
  int64_t heads;
  int64_t key_heads;
  int64_t rows;     ///< queries per head
  int64_t columns;  ///< keys per head
  int64_t width;    ///< elements of a query or key
  float scale;
  bool causal;
  const float* mask = nullptr;  ///< added to the scaled scores; null for none
  Dims mask_strides;

  AttentionProblem(const In& query, const In& key, bool is_causal, const In& attn_mask,
                   std::optional<double> given_scale)
      : batch(query.size(0)),
        heads(query.size(1)),
        key_heads(key.size(1)),
        rows(query.size(2)),
        columns(key.size(2)),
        width(query.size(3)),
        scale(
            static_cast<float>(given_scale.value_or(1.0 / std::sqrt(static_cast<double>(width))))),
        causal(is_causal) {
    if (attn_mask.defined()) {
      mask = attn_mask.data<float>();
      mask_strides =
          broadcast_strides(attn_mask.sizes(), attn_mask.strides(), {batch, heads, rows, columns});
    }
  }

  int64_t query_blocks() const { return (rows + kAttentionBlock - 1) / kAttentionBlock; }
  int64_t heads_per_key() const { return heads / key_heads; }
  /// Width rounded up so that a row fills vectors.
  int64_t padded_width() const { return (width + 15) / 16 * 16; }
  /// Number of keys visible to the rows before `row`.
  int64_t keys_before(int64_t row) const { return causal ? std::min(columns, row) : columns; }
};

/// A block of scores: the queries [query, query + queries) of head h, the keys [key, key + keys).
struct ScoreBlock {
  int64_t b, h;
  int64_t query, queries;
  int64_t key, keys;

  /// Number of the block's keys that its queries [0, r] see in a causal problem.
  int64_t seen_by(int64_t r) const { return std::clamp<int64_t>(query + r + 1 - key, 0, keys); }
};

}  // namespace lockstep::cpu
