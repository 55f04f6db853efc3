#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Padding. `pad` holds two numbers for each dimension, before and after, the last dimension first;
// negative ones cut elements off.

/// Pads self with `value` in as many of the last dimensions as `pad` has pairs.
Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value = 0);
/// Appends zeros to each dimension of self up to `sizes`; returns self itself when it has these
/// sizes. A self without elements may have any number of dimensions.
Tensor zero_extend(const Tensor& self, IntList sizes);

// `padding` has one, two or three pairs for the last dimensions of self; before these self has a
// channel and, optionally, a batch dimension.

/// Pads self with its elements mirrored at the borders; border elements are not repeated. Each
/// padding must be smaller than the dimension's size.
Tensor reflection_pad(const Tensor& self, IntList padding);
/// Gradient of reflection_pad's input. Only the shape and dtype of `self` are read.
Tensor reflection_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// Pads self by repeating its border elements.
Tensor replication_pad(const Tensor& self, IntList padding);
Tensor replication_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);

}  // namespace lockstep
