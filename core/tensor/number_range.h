#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/scalar.h"

namespace lockstep {

/// The largest finite number of a floating dtype.
double largest_finite(DType dtype);
/// The distance from 1 to the next larger number of a floating dtype.
double machine_epsilon(DType dtype);

/// The ends of an integer dtype.
int64_t smallest_integer(DType dtype);
int64_t largest_integer(DType dtype);

/// Whether an element of `dtype` can hold `number`, by PyTorch's rules: bool holds everything,
/// integers hold the numbers between their ends (fractions are dropped) and no NaN, and floating
/// dtypes hold infinities, NaN, and finite numbers up to their largest. A negative integer given to
/// uint8 counts from 256: -1 is 255.
bool can_hold(DType dtype, const Scalar& number);

/// Throws DTypeError naming `op` and what the number is for (`value`, say) unless `dtype` can hold
/// it.
void check_holds(std::string_view op, std::string_view what, DType dtype, const Scalar& number);

}  // namespace lockstep
