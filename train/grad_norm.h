#pragma once

#include <span>

#include "core/tensor/tensor.h"

namespace lockstep::train {

// Numbers as tensors: f64, 0-d, on the gradients' device, which nobody waits for.

/// sqrt of the sum of squares over all gradients. Each contributes f64 sums of its 4096-element
/// blocks in a fixed order of lanes; all are added in (tensor, block) order. So the bits depend on
/// neither threads nor on how gradients are bucketed or sharded.
Tensor grad_norm(std::span<const Tensor> gradients);
/// The same of gradients whose `_block_square_sums` these are.
Tensor norm_of_square_sums(const Tensor& sums);

/// What gradients are multiplied by so that their norm is at most `limit`, above 0; `norm` is
/// theirs.
Tensor clip_factor(const Tensor& norm, double limit);

}  // namespace lockstep::train
