#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// The normal distribution and its relatives. Integers and bools become float32. pointwise.h
// describes what all pointwise operators have in common.

/// The inverse of erf: infinite at -1 and 1, NaN outside.
Tensor erfinv(const Tensor& self);
/// exp(self^2) erfc(self), without overflow above 0.
Tensor special_erfcx(const Tensor& self);
/// The standard normal distribution function, its logarithm, exact far below 0, and its inverse:
/// infinite at 0 and 1, NaN outside.
Tensor special_ndtr(const Tensor& self);
Tensor special_log_ndtr(const Tensor& self);
Tensor special_ndtri(const Tensor& self);
/// -self log(self): 0 at 0, -inf below.
Tensor special_entr(const Tensor& self);
/// sin(pi self) / (pi self), 1 at 0.
Tensor sinc(const Tensor& self);

}  // namespace lockstep
