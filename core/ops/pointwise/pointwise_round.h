#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Rounding and limits of each element. Results keep self's dtype unless a bound promotes it;
// integers are round already. Bools are refused (DTypeError). See pointwise.h for what holds for
// all of them.

/// The gradient of the four is 0. `round` takes halves to the even neighbour.
Tensor floor(const Tensor& self);
Tensor ceil(const Tensor& self);
Tensor trunc(const Tensor& self);
Tensor round(const Tensor& self);
/// Rounds to `decimals` places after the point; negative ones are before it. Floating dtypes only.
Tensor round(const Tensor& self, int64_t decimals);
/// self - trunc(self). Floating dtypes only.
Tensor frac(const Tensor& self);
/// sign(self).
Tensor sgn(const Tensor& self);
/// self itself.
Tensor positive(const Tensor& self);

/// NaN as 0 and infinities as the dtype's largest finite numbers, or as the numbers given.
Tensor nan_to_num(const Tensor& self, std::optional<double> nan = std::nullopt,
                  std::optional<double> posinf = std::nullopt,
                  std::optional<double> neginf = std::nullopt);

/// self, but not below `min` and not above `max`; `max` where the two cross. NaN in any of the
/// three gives NaN. The gradient goes to the one that was taken; at a bound that is a tensor both
/// get half of it, at a number self gets none. Throws Error when both bounds are missing.
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp(const Tensor& self, OptionalTensor min, OptionalTensor max);
const Tensor& clamp_(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp_min(const Tensor& self, const Scalar& min);
Tensor clamp_min(const Tensor& self, const Tensor& min);
Tensor clamp_max(const Tensor& self, const Scalar& max);
Tensor clamp_max(const Tensor& self, const Tensor& max);

}  // namespace lockstep
