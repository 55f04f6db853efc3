#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that widen tensors at their borders. `pad` holds two numbers for each dimension, before
// and after, the last dimension first; negative ones cut elements off.

/// self with `value` around it in as many of the last dimensions as `pad` has pairs.
Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value = 0);
/// self with zeros behind its elements, up to `sizes`; self itself when it has them. A self without
/// elements may have any number of dimensions.
Tensor zero_extend(const Tensor& self, IntList sizes);

// `padding` has one, two or three pairs, for the last dimensions of self, in front of which stand
// channels and, optionally, a batch.

/// self with its inside mirrored at the borders, the border elements not repeated. A side is padded
/// by less than the dimension's size.
Tensor reflection_pad(const Tensor& self, IntList padding);
/// Sums `grad_output` to the elements of `self` that reflection_pad read.
Tensor reflection_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);
/// self with its border elements repeated.
Tensor replication_pad(const Tensor& self, IntList padding);
Tensor replication_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding);

}  // namespace lockstep
