#pragma once

#include "core/ops/batching.h"

namespace lockstep::batching {

// Batching rules of normalisations, losses and attention, named like their operators.

void native_layer_norm(const Operator& op, uint64_t batched, Stack& stack);
void fused_rms_norm(const Operator& op, uint64_t batched, Stack& stack);
void stream_norm(const Operator& op, uint64_t batched, Stack& stack);
void stream_sum_norm(const Operator& op, uint64_t batched, Stack& stack);
void stream_norm_backward(const Operator& op, uint64_t batched, Stack& stack);
void group_norm(const Operator& op, uint64_t batched, Stack& stack);
/// Batch norms. Channels are independent of each other, so the batch is folded into the channels.
void channels(const Operator& op, uint64_t batched, Stack& stack);

void nll_loss_forward(const Operator& op, uint64_t batched, Stack& stack);
void nll_loss_backward(const Operator& op, uint64_t batched, Stack& stack);
void fused_cross_entropy(const Operator& op, uint64_t batched, Stack& stack);
void fused_cross_entropy_backward(const Operator& op, uint64_t batched, Stack& stack);

/// Forward and backward. The batch is folded into the batch dimension of the sequences.
void flash_attention(const Operator& op, uint64_t batched, Stack& stack);

}  // namespace lockstep::batching
