#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Functions of two operands, and the sign. pointwise.h describes what all pointwise operators have
// in common.

/// |self| with the sign of other, that of -0 and NaN too. Integers become float32.
Tensor copysign(const Tensor& self, const Tensor& other);
/// True where the sign bit is set: of negative numbers, -0 and some NaNs.
Tensor signbit(const Tensor& self);
/// The larger (smaller) of the two; where one is NaN, the other. Equal elements share the gradient.
Tensor fmax(const Tensor& self, const Tensor& other);
Tensor fmin(const Tensor& self, const Tensor& other);
/// 0 where self < 0 or NaN, 1 where self > 0, `values` where self is 0. Operands of one dtype. Has
/// no derivative.
Tensor heaviside(const Tensor& self, const Tensor& values);
/// The greatest common divisor, 0 for two zeros, and the least common multiple, 0 with a zero and
/// modulo the dtype's width. Integers only.
Tensor gcd(const Tensor& self, const Tensor& other);
Tensor lcm(const Tensor& self, const Tensor& other);
/// The next number of the result's dtype after self in the direction of other. Floating dtypes
/// only.
Tensor nextafter(const Tensor& self, const Tensor& other);

/// log2(2^self + 2^other) without intermediate overflow. Floating dtypes only.
Tensor logaddexp2(const Tensor& self, const Tensor& other);
/// self * log(1 + other), 0 where self is 0 and other is not NaN. Integers become float32.
Tensor special_xlog1py(const Tensor& self, const Tensor& other);
/// The Hurwitz zeta function, the sum over k >= 0 of (other + k)^-self: infinite for self = 1 and
/// other = 0, -1, ..., NaN for self < 1. Integers become float32. A backward that needs the
/// gradient of self throws Error.
Tensor special_zeta(const Tensor& self, const Tensor& other);

}  // namespace lockstep
