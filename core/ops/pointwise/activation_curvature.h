#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// The second derivative of gelu(x, "tanh").
Tensor gelu_tanh_curvature(const Tensor& x);
/// The second derivative of silu(x).
Tensor silu_curvature(const Tensor& x);

}  // namespace lockstep
