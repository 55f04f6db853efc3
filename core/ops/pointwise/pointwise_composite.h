#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Pointwise formulas made of the operators in pointwise.h and its neighbours.

/// div: integers become float32.
Tensor true_divide(const Tensor& self, const Tensor& other);
/// The quotient rounded down; integers stay integers. The gradient is 0. Throws Error for an
/// integer division by 0, DTypeError for bools.
Tensor floor_divide(const Tensor& self, const Tensor& other);
/// self to the power of exponent, in float64 whatever the dtypes.
Tensor float_power(const Tensor& self, const Tensor& exponent);
/// self * 2^other; two integers give float32.
Tensor ldexp(const Tensor& self, const Tensor& other);

}  // namespace lockstep
