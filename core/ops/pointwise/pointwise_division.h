#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

// Division with rounding. Integers stay integers; bools throw DTypeError. An integer division by 0
// throws Error and may leave the destination of an in-place or out= form partly written. Floats
// divided by 0 give inf or NaN. pointwise.h describes what all pointwise operators have in common.

/// self / other rounded towards 0 ("trunc"), down ("floor") or not at all (integers then become
/// float32). The gradient of a rounded quotient is 0.
Tensor div(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode);
Tensor div(const Tensor& self, const Scalar& other, std::optional<std::string_view> rounding_mode);
/// self - other * trunc(self / other): the sign is self's.
Tensor fmod(const Tensor& self, const Tensor& other);
Tensor fmod(const Tensor& self, const Scalar& other);
/// self - other * floor(self / other): the sign is other's.
Tensor remainder(const Tensor& self, const Tensor& other);
Tensor remainder(const Tensor& self, const Scalar& other);
Tensor remainder(const Scalar& self, const Tensor& other);

inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, const Scalar& b) { return remainder(a, b); }
inline Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }

}  // namespace lockstep
