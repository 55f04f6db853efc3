#pragma once

#include "nn/conv_layers.h"

namespace lockstep::nn {

/// x with padding on both sides of its last dimensions: `pairs` holds two numbers for each, before
/// and after, the last dimension first. `value` is what kZeros pads with. Throws ShapeError.
Tensor padded(const Tensor& x, IntList pairs, PaddingMode mode, double value = 0);

}  // namespace lockstep::nn
