#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

// Bessel functions, computed in float64. Integers and bools become float32. pointwise.h describes
// what all pointwise operators have in common.

/// The modified Bessel functions of the first kind I_0 and I_1, and the same times exp(-|self|).
Tensor i0(const Tensor& self);
Tensor special_i0e(const Tensor& self);
Tensor special_i1(const Tensor& self);
Tensor special_i1e(const Tensor& self);
/// The Bessel functions of the first kind J_0 and J_1.
Tensor special_bessel_j0(const Tensor& self);
Tensor special_bessel_j1(const Tensor& self);

}  // namespace lockstep
