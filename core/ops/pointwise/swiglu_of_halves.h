#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// swiglu of the first and the second half of the last dimension, as one projection computes them:
/// [..., 2 n] to [..., n]. The gradient of `gate_up` is one tensor, where slices would have two
/// that are copied into one. Bits are those of swiglu.
Tensor swiglu_of_halves(const Tensor& gate_up);
/// The gradient of `gate_up` above.
Tensor swiglu_of_halves_backward(const Tensor& grad_output, const Tensor& gate_up);

}  // namespace lockstep
