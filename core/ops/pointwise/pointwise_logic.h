#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Truth and bits of each element; none has a derivative. See pointwise.h for what holds for all.

/// Bool results from any dtypes: an element is true when it is not zero; NaN is true.
Tensor logical_and(const Tensor& self, const Tensor& other);
Tensor logical_or(const Tensor& self, const Tensor& other);
Tensor logical_xor(const Tensor& self, const Tensor& other);

/// Integers and bools only; DTypeError for others.
Tensor bitwise_and(const Tensor& self, const Tensor& other);
Tensor bitwise_and(const Tensor& self, const Scalar& other);
Tensor bitwise_and(const Scalar& self, const Tensor& other);
Tensor bitwise_or(const Tensor& self, const Tensor& other);
Tensor bitwise_or(const Tensor& self, const Scalar& other);
Tensor bitwise_or(const Scalar& self, const Tensor& other);
Tensor bitwise_xor(const Tensor& self, const Tensor& other);
Tensor bitwise_xor(const Tensor& self, const Scalar& other);
Tensor bitwise_xor(const Scalar& self, const Tensor& other);
/// ~self; for bools logical_not.
Tensor bitwise_not(const Tensor& self);
/// self * 2^other and self / 2^other rounded down, in the width of the result. By a negative number
/// of places, or by the width and more, nothing is left: 0, or the sign. Integers only.
Tensor bitwise_left_shift(const Tensor& self, const Tensor& other);
Tensor bitwise_left_shift(const Tensor& self, const Scalar& other);
Tensor bitwise_left_shift(const Scalar& self, const Tensor& other);
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other);
Tensor bitwise_right_shift(const Tensor& self, const Scalar& other);
Tensor bitwise_right_shift(const Scalar& self, const Tensor& other);

Tensor isinf(const Tensor& self);
/// |self - other| <= atol + rtol |other|, or equal, or (on request) both NaN. Throws DTypeError
/// unless both have one dtype, Error for a negative tolerance.
Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);

}  // namespace lockstep
