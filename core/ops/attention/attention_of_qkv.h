#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Attention of queries, keys and values that one projection has computed, as
/// scaled_dot_product_attention without mask and dropout: result [B, T, heads D].
///
/// `qkv` is [B, T, (heads + 2 key_heads) D]: in each row the query heads, then the key heads, then
/// the value heads, D elements each. `key_heads` divides `heads`; neighbouring query heads share
/// one. The gradient of `qkv` is one tensor, into which the gradients of queries, keys and values
/// are written; slices of `qkv` would have three that are copied into one.
Tensor attention_of_qkv(const Tensor& qkv, int64_t heads, int64_t key_heads, bool is_causal = false,
                        std::optional<double> scale = std::nullopt);
/// Computes the same from slices and scaled_dot_product_attention.
Tensor attention_of_qkv_reference(const Tensor& qkv, int64_t heads, int64_t key_heads,
                                  bool is_causal = false,
                                  std::optional<double> scale = std::nullopt);

/// The fused form, for f32, bf16 and f16: the result, and the logarithm of each row's sum of
/// exponentials, f32 [B, heads, T]. Both are row-major.
std::tuple<Tensor, Tensor> _flash_attention_of_qkv(const Tensor& qkv, int64_t heads,
                                                   int64_t key_heads, bool is_causal = false,
                                                   std::optional<double> scale = std::nullopt);
/// The gradient of `qkv`, row-major; scores are recomputed block by block.
Tensor _flash_attention_of_qkv_backward(const Tensor& grad_out, const Tensor& qkv,
                                        const Tensor& out, const Tensor& logsumexp, int64_t heads,
                                        int64_t key_heads, bool is_causal,
                                        std::optional<double> scale = std::nullopt);

}  // namespace lockstep
