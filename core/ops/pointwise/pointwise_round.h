#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Rounding and clamping. Results keep self's dtype unless a bound promotes it; rounding returns
// integers unchanged. Bools throw DTypeError. pointwise.h describes what all pointwise operators
// have in common.

/// Rounding to integers; the gradient of all four is 0. `round` rounds halves to even.
Tensor floor(const Tensor& self);
Tensor ceil(const Tensor& self);
Tensor trunc(const Tensor& self);
Tensor round(const Tensor& self);
/// Rounds to `decimals` places after the decimal point, or before it if negative. Floating dtypes
/// only.
Tensor round(const Tensor& self, int64_t decimals);
/// self - trunc(self). Floating dtypes only.
Tensor frac(const Tensor& self);
/// sign(self).
Tensor sgn(const Tensor& self);
/// self itself.
Tensor positive(const Tensor& self);

/// Replaces NaN by `nan` (default 0) and infinities by `posinf` and `neginf` (default: the dtype's
/// largest and lowest finite numbers).
Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                  std::optional<double> posinf = std::nullopt,
                  std::optional<double> neginf = std::nullopt);

/// self limited to [min, max]; `max` where min > max. NaN in any of the three gives NaN. The
/// gradient goes to the operand that was selected; where self equals a bound, both get half of it
/// if the bound is a tensor, and self gets none if it is a number. Throws Error when both bounds
/// are missing.
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp(const Tensor& self, OptionalTensor min, OptionalTensor max);
const Tensor& clamp_(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp_min(const Tensor& self, const Scalar& min);
Tensor clamp_min(const Tensor& self, const Tensor& min);
Tensor clamp_max(const Tensor& self, const Scalar& max);
Tensor clamp_max(const Tensor& self, const Tensor& max);

}  // namespace lockstep
