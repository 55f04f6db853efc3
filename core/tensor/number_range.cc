#include "core/tensor/number_range.h"

#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace lockstep {

namespace {

/// Number of bits of an integer dtype that hold the magnitude.
int magnitude_bits(DType dtype) {
  return static_cast<int>(size_of(dtype)) * 8 - (dtype == DType::kU8 ? 0 : 1);
}

bool integer_holds(DType dtype, const Scalar& number) {
  const int bits = magnitude_bits(dtype);
  const bool is_signed = dtype != DType::kU8;
  if (number.is_floating()) {
    const double value = number.to_double();
    const double limit = std::ldexp(1.0, bits);  // exact, unlike the largest int64
    return value >= (is_signed ? -limit : 0.0) && (bits == 63 ? value < limit : value <= limit - 1);
  }
  const int64_t value = number.to_int();
  if (bits == 63) return true;
  const int64_t limit = int64_t{1} << bits;
  return value < limit && value >= (is_signed ? -limit : 1 - limit);
}

}  // namespace

int64_t smallest_integer(DType dtype) {
  return dtype == DType::kU8 ? 0 : -largest_integer(dtype) - 1;
}

int64_t largest_integer(DType dtype) {
  return std::numeric_limits<int64_t>::max() >> (63 - magnitude_bits(dtype));
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

double machine_epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

bool can_hold(DType dtype, const Scalar& number) {
  if (dtype == DType::kBool || number.kind() == DType::kBool) return true;
  if (is_integral(dtype)) return integer_holds(dtype, number);
  const double magnitude = std::abs(number.to_double());
  return !(magnitude > largest_finite(dtype)) || std::isinf(magnitude);
}

void check_holds(std::string_view op, std::string_view what, DType dtype, const Scalar& number) {
  LS_CHECK(can_hold(dtype, number), DTypeError,
           "[{}] {} cannot hold the {}: expected a number in its range, got {}. Use a wider dtype.",
           op, to_string(dtype), what, to_string(number));
}

}  // namespace lockstep
