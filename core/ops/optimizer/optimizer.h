#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Optimizer steps: one call updates every parameter, in one parallel pass over all elements. The
// lists have one length; tensors of one index have one shape. All are f32 or all f64, contiguous.
// Bits do not depend on the number of threads.

/// One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) in place. For each element, with
/// g = grad_scale * grad:
///   p *= 1 - lr * weight_decay;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
/// `step`, f64, counts from 1: a tensor of one element, so that what is queued, or recorded to be
/// replayed, need not know which step it is. A number below 1 is an error, which an asynchronous
/// device throws at its next synchronisation. `grad_scale` is the factor by which clipping shrinks
/// all gradients; the gradients themselves are only read. `decayed` holds 0 or 1 per tensor:
/// weight_decay is taken as 0 where it is 0. Empty means 1 everywhere.
///
/// What only the device knows when the step is queued comes as a tensor of one element there:
/// `grad_factor`, f64, multiplies grad_scale; where `found_inf`, f32, is not 0 nothing is changed.
void _fused_adamw_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                   MutableTensorList exp_avg_sqs, double lr, double beta1, double beta2,
                   double weight_decay, double eps, const Tensor& step, double grad_scale = 1.0,
                   IntList decayed = {}, OptionalTensor grad_factor = {},
                   OptionalTensor found_inf = {});

/// One step of SGD in place. For each element, with g = grad_scale * grad + weight_decay * p:
///   b = momentum * b + g;  p -= lr * (nesterov ? g + momentum * b : b)
/// Buffers start at zero, so the first step sets b = g. With momentum = 0 the buffers are not
/// touched, and the list may be empty. `decayed`, `grad_factor` and `found_inf` as above.
void _fused_sgd_(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                 double lr, double momentum, bool nesterov, double weight_decay,
                 double grad_scale = 1.0, IntList decayed = {}, OptionalTensor grad_factor = {},
                 OptionalTensor found_inf = {});

/// Elements that one partial sum of `_block_square_sums` covers, and the unit in which shards are
/// cut.
inline constexpr int64_t kNormBlock = 4096;
/// Sums of squares of blocks of kNormBlock consecutive elements (row by row; a tensor's last block
/// may be shorter), each added in one fixed order: f64, those of the first tensor,
/// ceil(numel / kNormBlock) of them, then those of the second, and so on. Norms that add these one
/// after the other are independent of how parameters were split between ranks. All tensors are f32
/// or all f64.
Tensor _block_square_sums(TensorList self);

/// The sum of all elements, f64, 0-d: to 0 the first is added, to that the second, and so on, so
/// that the bits are those of a plain loop on every device. self is f32 or f64.
Tensor _ordered_sum(const Tensor& self);

}  // namespace lockstep
