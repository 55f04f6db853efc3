#pragma once

#include <tuple>

#include "core/ops/loss/loss.h"

namespace lockstep {

/// Connectionist temporal classification (Graves et al. 2006): minus the logarithm of the
/// probability that the steps of a sequence spell its target, with repeated classes merged and
/// blanks removed.
///
/// `log_probs` are log-probabilities [steps, batch, classes], or [steps, classes] without a batch.
/// `targets` (int64 or int32) are [batch, longest], or one after the other in one dimension; a
/// class outside [0, classes) throws IndexError. Sequence i has `input_lengths[i]` steps and
/// `target_lengths[i]` classes. A target that the steps cannot spell has an infinite loss, or 0
/// with `zero_infinity`. kMean divides each loss by the length of its target (at least 1) first.
///
/// The gradient is that of log_softmax's argument, as in ATen: exp(log_probs) less the probability
/// of each class at each step given the target. It is differentiable once.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                IntList target_lengths, int64_t blank = 0, Reduction reduction = Reduction::kMean,
                bool zero_infinity = false);

}  // namespace lockstep
