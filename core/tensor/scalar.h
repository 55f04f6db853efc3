#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include "core/tensor/dtype.h"

namespace lockstep {

class Scalar;

namespace detail {
/// Throws DTypeError: int64 cannot hold `value`.
[[noreturn]] void throw_number_too_large(uint64_t value);
/// Throws DTypeError unless `number` is an integer from `smallest` to `largest`.
void check_integer(const Scalar& number, int64_t smallest, uint64_t largest);
/// Throws DTypeError if `converted` is infinite where `number` is not.
void check_finite(const Scalar& number, float converted);
}  // namespace detail

/// A number given to an operator. Remembers whether it was a bool, an integer or a float, because
/// that decides promotion (`int_tensor + 1` stays integral, `int_tensor + 1.5` does not).
class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  /// Throws DTypeError for an unsigned number that int64 cannot hold.
  template <std::integral T>
  Scalar(T value)
      : integer_(static_cast<int64_t>(value)),
        kind_(std::same_as<T, bool> ? DType::kBool : DType::kI64) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t)) {
      if (integer_ < 0) [[unlikely]]
        detail::throw_number_too_large(value);
    }
  }
  template <std::floating_point T>
  Scalar(T value) : real_(value), kind_(DType::kF64) {}

  /// kBool, kI64 or kF64.
  DType kind() const { return kind_; }
  bool is_floating() const { return kind_ == DType::kF64; }
  double to_double() const { return is_floating() ? real_ : static_cast<double>(integer_); }
  int64_t to_int() const { return is_floating() ? static_cast<int64_t>(real_) : integer_; }
  bool to_bool() const { return is_floating() ? real_ != 0 : integer_ != 0; }
  template <class T>
  T to() const {
    if constexpr (std::same_as<T, bool>) {
      return to_bool();
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(to_int());
    } else if constexpr (std::same_as<T, double>) {
      return to_double();
    } else {
      return T(static_cast<float>(to_double()));
    }
  }
  /// to<T>(), but throws DTypeError if T cannot hold the number: a fraction, an infinity or a NaN
  /// in an integer type, a number outside the range of T. A bool is whether it is not 0.
  template <class T>
  T checked_to() const {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      detail::check_integer(*this, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    } else if constexpr (!std::same_as<T, bool> && !std::same_as<T, double>) {
      detail::check_finite(*this, static_cast<float>(to<T>()));
    }
    return to<T>();
  }
  Scalar operator-() const { return is_floating() ? Scalar(-real_) : Scalar(-integer_); }

 private:
  union {
    int64_t integer_;
    double real_;
  };
  DType kind_;
};

std::string to_string(const Scalar& scalar);

}  // namespace lockstep
