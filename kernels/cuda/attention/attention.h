#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// A tensor [batch, heads, rows, width] of any strides, in elements.
struct HeadTensor {
  void* data;
  int64_t strides[4];
};

/// Arguments of one fused attention call, forward or backward. A block computes kRows rows of a
/// result and attention_columns(width) of its columns, at index blockIdx.y.
struct AttentionParams {
  static constexpr int kRows = 64;

  HeadTensor query, key, value;
  HeadTensor out;  ///< forward result, read by the backward pass
  HeadTensor grad_out, grad_query, grad_key, grad_value;
  HeadTensor logsumexp;  ///< f32 [batch, heads, rows]
  HeadTensor mask;       ///< f32 [batch, heads, rows, keys], added to the scores; null for none
  float* row_sums;       ///< kRowSums per query, from attention_queries for attention_keys
  int64_t heads, key_heads;
  int64_t rows, keys, width;
  float scale;
  bool causal;

  static constexpr int kRowSums = 3;
};

/// Columns of a result computed by one block; there are kernels for 64 and 128.
constexpr int attention_columns(int64_t width) { return width <= 64 ? 64 : 128; }

}  // namespace lockstep::cuda
