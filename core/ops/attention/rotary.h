#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Rotary positions (Su et al. 2021, arXiv 2104.09864), in the half-split order of Llama's weights:
/// turns each pair (x[i], x[i + D/2]) of `input` [..., T, D] by the angle of its position,
///   y[i] = x[i] c - x[i + D/2] s,   y[i + D/2] = x[i + D/2] c + x[i] s,
/// with c and s from `cosine` and `sine` [T, D/2]. `inverse` turns the other way, which is the
/// gradient of the input. The input has 2 to 4 dimensions, any strides and a floating dtype; tables
/// are float32, or float64 beside a float64 input. Computed in the tables' dtype and rounded once.
/// The result has the input's dtype, and its order of dimensions where the input is dense; a slice
/// of a joint projection gives the order of [B, T, H, D].
Tensor rotary_embedding(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                        bool inverse = false);
/// Turns the pairs of `input` itself.
const Tensor& rotary_embedding_(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                bool inverse = false);

/// rotary_embedding of the query and key heads in each row of a joint projection (core/ops/
/// attention/attention_of_qkv.h); value heads are copied. qkv and the result are [B, T, (heads + 2
/// key_heads) D], tables [T, D/2].
Tensor rotary_of_qkv(const Tensor& qkv, const Tensor& cosine, const Tensor& sine, int64_t heads,
                     int64_t key_heads, bool inverse = false);
/// Computes the same from slices, rotary_embedding and `cat`.
Tensor rotary_of_qkv_reference(const Tensor& qkv, const Tensor& cosine, const Tensor& sine,
                               int64_t heads, int64_t key_heads, bool inverse = false);

/// Computes the same from slices, products and `cat`: the oracle of the kernels.
Tensor rotary_embedding_reference(const Tensor& input, const Tensor& cosine, const Tensor& sine,
                                  bool inverse = false);

}  // namespace lockstep
