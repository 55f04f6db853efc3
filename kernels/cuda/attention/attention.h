#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// A tensor [batch, heads, rows, width] of any strides, in elements.
struct HeadTensor {
  void* data;
  int64_t strides[4];
};

/// One call of the fused attention, either direction. A block computes kRows rows of a result, and
/// at most `columns` of its columns (blockIdx.y tells which).
struct AttentionParams {
  static constexpr int kRows = 64;

  HeadTensor query, key, value;
  HeadTensor out;  ///< of the forward pass
  HeadTensor grad_out, grad_query, grad_key, grad_value;
  HeadTensor logsumexp;  ///< f32 [batch, heads, rows]
  HeadTensor mask;       ///< f32 [batch, heads, rows, keys], added to the scores; null for none
  float* row_sums;       ///< kRowSums numbers for each query: what the keys' blocks need to know
  int64_t heads, key_heads;
  int64_t rows, keys, width;
  float scale;
  bool causal;

  static constexpr int kRowSums = 3;
};

/// Columns of a result that one block computes: kernels exist for 64 and 128.
constexpr int attention_columns(int64_t width) { return width <= 64 ? 64 : 128; }

}  // namespace lockstep::cuda
