#pragma once

#include "core/tensor/outputs.h"

namespace lockstep::rules {

// Shape rules of core/ops/attention/attention.cc, defined in core/ops/attention/attention_rules.cc.

Outputs flash_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        double dropout_p, bool is_causal, OptionalTensor attn_mask,
                        std::optional<double> scale);
Outputs flash_attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                 const Tensor& value, const Tensor& out, const Tensor& logsumexp,
                                 double dropout_p, bool is_causal, OptionalTensor attn_mask,
                                 std::optional<double> scale);

}  // namespace lockstep::rules
