#include "core/base/digits.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace lockstep {
namespace {

constexpr uint64_t kFirstPowerOfTwo = uint64_t{1} << 17;
constexpr uint64_t kFirstPowerOfTen = 10'000'000;

/// The exponent if `value` is a power of ten, else -1.
int power_of_ten(uint64_t value) {
  int exponent = 0;
  for (; value >= 10 && value % 10 == 0; value /= 10) ++exponent;
  return value == 1 ? exponent : -1;
}

}  // namespace

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  const int64_t first = value < 0 ? 1 : 0;
  for (int64_t at = std::ssize(digits) - 3; at > first; at -= 3) {
    digits.insert(digits.begin() + at, ',');
  }
  return digits;
}

std::string bound_text(uint64_t value) {
  if (value >= kFirstPowerOfTwo && std::has_single_bit(value)) {
    return fmt::format("2^{}", std::countr_zero(value));
  }
  if (const int exponent = power_of_ten(value); exponent > 0 && value >= kFirstPowerOfTen) {
    return fmt::format("10^{}", exponent);
  }
  // 2^31 - 1, 2^32 - 1, 2^63 - 1 and 2^64 - 1.
  const int ones = std::countr_one(value);
  if (static_cast<int>(std::bit_width(value)) == ones && ones >= 31)
    return fmt::format("2^{} - 1", ones);
  return fmt::format("{}", value);
}

std::string bound_text(int64_t value) {
  if (value >= 0) return bound_text(static_cast<uint64_t>(value));
  return "-" + bound_text(uint64_t{0} - static_cast<uint64_t>(value));
}

std::string bound_text(double value) {
  const double size = std::abs(value);
  if (size >= static_cast<double>(kFirstPowerOfTen) && size < 0x1p63 && size == std::floor(size)) {
    return bound_text(static_cast<int64_t>(value));
  }
  const std::string digits = fmt::format("{}", value);
  // "1e+30" and "1e-06" are powers as well.
  if (digits.starts_with("1e")) return fmt::format("10^{}", std::stoi(digits.substr(2)));
  return digits;
}

}  // namespace lockstep
