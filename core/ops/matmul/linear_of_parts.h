#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// One product for several linear layers of the same input, such as the projections to queries, keys
// and values. The weights [out_i, in] stay tensors of their own. Where they lie side by side in
// memory, each starting where the one before ends, the product reads them in place; elsewhere it
// reads a copy of them. Bits are the same either way.

/// linear(input, cat(weights)): input [..., in] to [..., out_0 + out_1 + ...].
Tensor linear_of_parts(const Tensor& input, TensorList weights);
/// grad_output cat(weights), the gradient of the input above: [..., out_0 + out_1 + ...] to [...,
/// in].
Tensor linear_of_parts_backward(const Tensor& grad_output, TensorList weights);

/// Computes the same as linear_of_parts from `cat` and `linear`.
Tensor linear_of_parts_reference(const Tensor& input, TensorList weights);

/// Moves dense tensors of one dtype and device to new memory, side by side. The tensors stay the
/// same objects with the same values; views and other tensors over their old memory no longer share
/// it. Not differentiable, not thread-safe. Does nothing with tensors that have no memory.
void lay_side_by_side(TensorList tensors);

}  // namespace lockstep
