#include "core/tensor/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.h"

namespace lockstep {

void detail::throw_number_too_large(uint64_t value) {
  throw DTypeError(fmt::format(
      "[scalar] the number is too large: expected at most 2^63 - 1, got {}. Use a float.", value));
}

void detail::check_integer(const Scalar& number, int64_t smallest, uint64_t largest) {
  bool fits = true;
  if (number.is_floating()) {
    // Both ends are compared as powers of two, which a double holds exactly.
    const double value = number.to_double();
    const double end = std::ldexp(1.0, std::min<int>(std::bit_width(largest), 63));
    fits = std::trunc(value) == value && value >= static_cast<double>(smallest) && value < end;
  } else {
    const int64_t value = number.to_int();
    fits = value >= smallest && (value < 0 || static_cast<uint64_t>(value) <= largest);
  }
  LS_CHECK(fits, DTypeError,
           "[item] the element {} does not fit: expected an integer from {} to {}. Read it as a "
           "wider type, or round it first.",
           to_string(number), smallest, largest);
}

void detail::check_finite(const Scalar& number, float converted) {
  LS_CHECK(std::isfinite(converted) || !std::isfinite(number.to_double()), DTypeError,
           "[item] the element {} is beyond the largest finite number of the type that was asked "
           "for. Read it as double.",
           to_string(number));
}

std::string to_string(const Scalar& scalar) {
  if (scalar.kind() == DType::kBool) return scalar.to_bool() ? "True" : "False";
  if (!scalar.is_floating()) return fmt::format("{}", scalar.to_int());
  const std::string text = fmt::format("{}", scalar.to_double());
  // "2.0" stays distinct from "2", because the kind of number decides promotion.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

}  // namespace lockstep
