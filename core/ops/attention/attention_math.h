#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Parts of attention as plain operators.

/// `scale`, or 1 / sqrt(D).
double attention_scale(const Tensor& query, std::optional<double> scale);
/// Number of query heads that share one head of `key`. Throws ShapeError where that is not whole.
int64_t heads_per_key(const Tensor& query, const Tensor& key);
/// Repeats each key or value head `repeats` times, once per query head that shares it.
Tensor repeat_heads(const Tensor& tensor, int64_t repeats);
/// softmax(scale query key^T + mask); a fully masked row gives zeros.
Tensor attention_probabilities(const Tensor& query, const Tensor& key, OptionalTensor attn_mask,
                               bool is_causal, double scale);

/// Gradients of, or given to, attention's backward pass; undefined ones count as zero.
struct AttentionGradients {
  Tensor grad_out, query, key, value;
};

/// The derivative of the backward pass: the gradients of its arguments [B, H, T, D] and
/// [B, heads dividing H, S, D], given those of the gradients that it returns (`of`; that of
/// `grad_out` is not used). The forward pass's results count as functions of query, key and value.
/// Computed in f32.
AttentionGradients attention_second_derivative(const AttentionGradients& of, const Tensor& grad_out,
                                               const Tensor& query, const Tensor& key,
                                               const Tensor& value, OptionalTensor attn_mask,
                                               bool is_causal, std::optional<double> scale);

}  // namespace lockstep
