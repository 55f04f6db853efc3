#pragma once

#include <span>

#include "core/tensor.h"

namespace lockstep::train {

/// sqrt of the sum of squares over all gradients. Each contributes f64 sums of its 4096-element
/// blocks in a fixed order of lanes; all are added in (tensor, block) order. So the bits depend on
/// neither threads nor on how gradients are bucketed or sharded.
double grad_norm(std::span<const Tensor> gradients);

/// What gradients are multiplied by so that their norm is at most `limit` (0: never clipped);
/// `norm` is theirs.
double clip_factor(double norm, double limit);

}  // namespace lockstep::train
