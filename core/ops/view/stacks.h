#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Tensors brought to a number of dimensions, and joined in those. A tensor that has the dimensions
// is returned as it is.

/// A number as [1].
Tensor atleast_1d(const Tensor& self);
/// A number as [1, 1], a vector [n] as [1, n].
Tensor atleast_2d(const Tensor& self);
/// A number as [1, 1, 1], a vector [n] as [1, n, 1], a matrix [n, m] as [n, m, 1].
Tensor atleast_3d(const Tensor& self);
/// Joins tensors along the second dimension; vectors [n] and numbers are columns [n, 1].
Tensor column_stack(TensorList tensors);

}  // namespace lockstep
