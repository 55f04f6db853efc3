#pragma once

#include <span>

#include "core/tensor/tensor.h"

namespace lockstep::train {

// All results are f64 0-d tensors on the gradients' device, so that computing them does not
// synchronize with it.

/// The 2-norm over all gradients. Each gradient contributes f64 sums of squares of its 4096-element
/// blocks, in a fixed order of lanes; all are added in (tensor, block) order. So the bits depend
/// neither on threads nor on how gradients are bucketed or sharded.
Tensor grad_norm(std::span<const Tensor> gradients);
/// Returns those sums of squares of all gradients, in order: f64 [blocks]. The gradients are on
/// `device`.
Tensor block_square_sums(std::span<const Tensor> gradients, Device device);
/// As grad_norm, from those sums.
Tensor norm_of_square_sums(const Tensor& sums);

/// The factor, at most 1, that brings gradients of norm `norm` to a norm of at most `limit` (above
/// 0).
Tensor clip_factor(const Tensor& norm, double limit);

}  // namespace lockstep::train
