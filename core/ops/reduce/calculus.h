#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

// Numerical integration and differentiation of values on a line. Two integers give float32. Bools
// throw DTypeError.

/// The integral of y along `dim` by the trapezoidal rule, for values `dx` apart or at the points
/// `x`: [size] points along `dim`, or a tensor that broadcasts with y. No values give 0.
Tensor trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
/// The integrals from the first value to each of the others.
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

/// The slopes of self along each of `dims`, for values `spacing` apart: central differences, and at
/// both ends one-sided ones of order `edge_order`, 1 or 2. Throws ShapeError for a dimension of
/// edge_order or fewer elements.
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntList dims,
                             int64_t edge_order = 1);

}  // namespace lockstep
