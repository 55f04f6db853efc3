#pragma once

#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/scalar.h"

namespace lockstep {

/// The largest finite number of a floating dtype.
double largest_finite(DType dtype);
/// The distance from 1 to the next larger number of a floating dtype.
double machine_epsilon(DType dtype);

/// Whether an element of `dtype` can hold `number`, by PyTorch's rules: bool holds everything,
/// integers hold the numbers between their ends (fractions are dropped) and no NaN, and floating
/// dtypes hold infinities, NaN, and finite numbers up to their largest. A negative integer given to
/// uint8 counts from 256: -1 is 255.
bool can_hold(DType dtype, const Scalar& number);

/// Throws DTypeError naming `op` and what the number is for (`value`, say) unless `dtype` can hold
/// it.
void check_holds(std::string_view op, std::string_view what, DType dtype, const Scalar& number);

/// `number` as a bound of values of `dtype`: of integers, one beyond their range is its end on that
/// side (so 300 and -5 of uint8 are 255 and 0).
Scalar as_bound(DType dtype, const Scalar& number);
/// Throws DTypeError unless some value of `dtype` is at least, or at most, the bound; floating
/// dtypes must hold it. PyTorch's rules for clamp.
void check_lower_bound(std::string_view op, std::string_view what, DType dtype,
                       const Scalar& bound);
void check_upper_bound(std::string_view op, std::string_view what, DType dtype,
                       const Scalar& bound);

}  // namespace lockstep
