#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Optimizer steps: one call updates every parameter, in one parallel pass over all elements. All
// lists have the same length, and tensors at one index the same shape. Tensors are all f32 or all
// f64, and contiguous. Bits do not depend on the number of threads.

/// One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) in place. For each element, with
/// g = grad_scale * grad:
///   p *= 1 - lr * weight_decay;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
/// `step`, f64, counts from 1. It is a tensor of one element so that a queued or recorded launch
/// (CUDA graph) does not contain the step number. A number below 1 is an error, which an
/// asynchronous device throws at its next synchronisation. `grad_scale` is the factor by which
/// clipping scales all gradients; the gradients themselves are only read. `decayed` holds 1 for
/// each tensor that weight_decay applies to and 0 for the others; empty means 1 everywhere.
///
/// Values that are only on the device when the step is queued are tensors of one element there:
/// `grad_factor`, f64, multiplies grad_scale, and `lr_factor`, f64, lr; if `found_inf`, f32, is not
/// 0 nothing is changed.
///
/// `casts`, in bf16 or f16, one for each parameter or none at all, get the new values in the same
/// pass, rounded as a cast rounds them.
void _fused_adamw_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs,
                   MutableTensorList exp_avg_sqs, double lr, double beta1, double beta2,
                   double weight_decay, double eps, const Tensor& step, double grad_scale = 1.0,
                   IntList decayed = {}, OptionalTensor grad_factor = {},
                   OptionalTensor found_inf = {}, MutableTensorList casts = {},
                   OptionalTensor lr_factor = {});

/// One step of SGD in place. For each element, with g = grad_scale * grad + weight_decay * p:
///   b = momentum * b + g;  p -= lr * (nesterov ? g + momentum * b : b)
/// Buffers start at zero, so the first step sets b = g. With momentum = 0 the buffers are not
/// touched, and the list may be empty. `decayed`, `grad_factor`, `found_inf`, `casts`, `lr_factor`
/// as above.
void _fused_sgd_(MutableTensorList self, TensorList grads, MutableTensorList momentum_buffers,
                 double lr, double momentum, bool nesterov, double weight_decay,
                 double grad_scale = 1.0, IntList decayed = {}, OptionalTensor grad_factor = {},
                 OptionalTensor found_inf = {}, MutableTensorList casts = {},
                 OptionalTensor lr_factor = {});

/// One step of Lion (Chen et al. 2023) in place. For each element, with g = grad_scale * grad:
///   c = beta1 m + (1 - beta1) g;  p -= lr * (sign(c) + weight_decay * p)
///   m = beta2 m + (1 - beta2) g
/// Means start at zero. `decayed`, `grad_factor`, `found_inf`, `casts`, `lr_factor` as above.
void _fused_lion_(MutableTensorList self, TensorList grads, MutableTensorList exp_avgs, double lr,
                  double beta1, double beta2, double weight_decay, double grad_scale = 1.0,
                  IntList decayed = {}, OptionalTensor grad_factor = {},
                  OptionalTensor found_inf = {}, MutableTensorList casts = {},
                  OptionalTensor lr_factor = {});

/// Elements covered by one partial sum of `_block_square_sums`; also the granularity at which
/// parameters may be sharded.
inline constexpr int64_t kNormBlock = 4096;
/// Sums of squares of blocks of kNormBlock consecutive elements in row-major order (a tensor's last
/// block may be shorter), each summed in a fixed order. f64: ceil(numel / kNormBlock) sums of the
/// first tensor, then those of the second, and so on. A norm that adds them with `_ordered_sum`
/// does not depend on how parameters are split between ranks. Tensors are all f32 or all f64.
Tensor _block_square_sums(TensorList self);

/// Elements that `_ordered_sum` adds one after the other.
inline constexpr int64_t kSumRun = 256;
/// The sum of all elements, f64, 0-d, with the same bits on every device. Each run of kSumRun
/// elements (the last may be shorter) is added in order, starting from 0; then the sums of the runs
/// are added in the same way, until there is one. self is f32 or f64.
Tensor _ordered_sum(const Tensor& self);

}  // namespace lockstep
