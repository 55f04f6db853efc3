#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

/// softmax(query key^T scale + mask) value, per batch and head (Vaswani et al. 2017,
/// section 3.2.1).
///
/// query [..., heads, T, D], key [..., heads, S, D], value [..., heads, S, E]; result
/// [..., heads, T, E]. In tensors of three dimensions the first is the heads; there is no batch.
/// `attn_mask` broadcasts to [..., heads, T, S]: bool keeps where true, floating is added to the
/// scores. `is_causal` lets row t attend to columns up to t, counted from the top left, and cannot
/// be combined with a mask. `scale` defaults to 1 / sqrt(D). `enable_gqa` allows key and value to
/// have fewer heads, a divisor of the query's: neighbouring query heads share one. A fully masked
/// row gives zeros. `dropout_p` drops probabilities and scales the rest by 1 / (1 - dropout_p).
///
/// f32, bf16 and f16 without dropout use the fused operator below, which never stores the scores;
/// everything else uses `_scaled_dot_product_attention_math`.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    OptionalTensor attn_mask = {}, double dropout_p = 0.0,
                                    bool is_causal = false,
                                    std::optional<double> scale = std::nullopt,
                                    bool enable_gqa = false);

/// The fused form (Dao 2023, FlashAttention-2): output [B, H, T, D] and the logarithm of each row's
/// sum of exponentials, f32 [B, H, T]. query, key and value are f32, bf16 or f16 of four dimensions
/// with one D, any strides; key and value may have fewer heads, a divisor of H. The output has the
/// query's order of dimensions where its rows are contiguous, else it is row-major. `attn_mask` is
/// f32, added, and gets no gradient. `dropout_p` must be 0.
std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p = 0.0,
    bool is_causal = false, OptionalTensor attn_mask = {},
    std::optional<double> scale = std::nullopt);
/// Gradients of query, key and value; scores are recomputed block by block. Each has the layout of
/// its argument where that is dense, and the order of [B, T, H, D] otherwise.
std::tuple<Tensor, Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& logsumexp, double dropout_p, bool is_causal,
    OptionalTensor attn_mask = {}, std::optional<double> scale = std::nullopt);

/// Attention composed of plain operators, for every dtype. Serves as the reference of the fused
/// form and for its second derivative. Returns the output and the probabilities (after dropout).
/// `dropout_mask` (bool, true keeps) replaces the random one.
std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value, OptionalTensor attn_mask = {},
    double dropout_p = 0.0, bool is_causal = false, OptionalTensor dropout_mask = {},
    std::optional<double> scale = std::nullopt, bool enable_gqa = false);

}  // namespace lockstep
