#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Elementary and special functions. Integers and bools become float32. Values, infinities and NaN
// are those of <cmath>. pointwise.h describes what all pointwise operators have in common.

Tensor exp2(const Tensor& self);
/// exp(self) - 1 and log(1 + self), without cancellation near 0.
Tensor expm1(const Tensor& self);
Tensor log1p(const Tensor& self);
Tensor log2(const Tensor& self);
Tensor log10(const Tensor& self);

Tensor tan(const Tensor& self);
Tensor asin(const Tensor& self);
Tensor acos(const Tensor& self);
Tensor atan(const Tensor& self);
Tensor sinh(const Tensor& self);
Tensor cosh(const Tensor& self);
Tensor asinh(const Tensor& self);
Tensor acosh(const Tensor& self);
Tensor atanh(const Tensor& self);
/// Converts radians to degrees.
Tensor rad2deg(const Tensor& self);
/// Converts degrees to radians.
Tensor deg2rad(const Tensor& self);

Tensor erf(const Tensor& self);
/// 1 - erf(self), without cancellation above 0.
Tensor erfc(const Tensor& self);
/// log of |gamma(self)|; infinite at 0, -1, -2, ....
Tensor lgamma(const Tensor& self);
/// The derivative of lgamma: NaN at -1, -2, ....
Tensor digamma(const Tensor& self);
/// The n-th derivative of digamma. Throws Error for a negative n.
Tensor polygamma(int64_t n, const Tensor& self);

}  // namespace lockstep
