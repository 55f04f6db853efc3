#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/error_flag.h"
#include "kernels/common/functor_name.h"
#include "kernels/pointwise/unary.h"

namespace lockstep::functors {

// Division with rounding. T is float or double. Integer division by zero has no value: the loop
// sets a flag and continues; the backend throws when it sees the flag.

/// a - b trunc(a / b).
struct FMod {
  static constexpr FunctorName kName = "FMod";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE double operator()(double a, double b) const { return std::fmod(a, b); }
  /// Exact in f64: below 2^28, the quotient of two floats is either an integer or farther from one
  /// than its rounding error.
  LS_HOST_DEVICE float operator()(float a, float b) const {
    const double x = a;
    const double y = b;
    const double rest = std::fma(-std::trunc(x / y), y, x);
    return std::copysign(static_cast<float>(rest), a);
  }
  LS_HOST_DEVICE static bool rare(float a, float b) {
    return !(std::fabs(a) < 0x1p28F * std::fabs(b)) ||
           std::fabs(b) == std::numeric_limits<float>::infinity();
  }
  LS_HOST_DEVICE static float exact(float a, float b) { return std::fmod(a, b); }
};
/// fmod with the sign of the divisor b.
struct Remainder {
  static constexpr FunctorName kName = "Remainder";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE static T signed_as(T rest, T b) {
    return rest != T(0) && (b < T(0)) != (rest < T(0)) ? rest + b : rest;
  }
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return signed_as(FMod()(a, b), b);
  }
  LS_HOST_DEVICE static bool rare(float a, float b) { return FMod::rare(a, b); }
  LS_HOST_DEVICE static float exact(float a, float b) { return signed_as(FMod::exact(a, b), b); }
};
struct DivideTruncate {
  static constexpr FunctorName kName = "DivideTruncate";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return std::trunc(a / b);
  }
};
/// floor of the exact quotient a / b.
struct DivideFloor {
  static constexpr FunctorName kName = "DivideFloor";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE double operator()(double a, double b) const {
    if (b == 0) return a / b;
    const double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
  }
  LS_HOST_DEVICE float operator()(float a, float b) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const double quotient = static_cast<double>(a) / static_cast<double>(b);
    float result = static_cast<float>(std::floor(quotient));
    // A finite nonzero a over an infinite b of the opposite sign: the exact quotient is just below
    // 0, but the computed one is -0.
    result = std::fabs(b) == kInfinity && a != 0.0F && (a < 0.0F) != (b < 0.0F) ? -1.0F : result;
    const bool undefined = std::fabs(a) == kInfinity && b != 0.0F;
    return undefined || a != a ? std::numeric_limits<float>::quiet_NaN() : result;
  }
};
struct Quotient {
  static constexpr FunctorName kName = "Quotient";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    return b == -1 ? Negate()(a) : a / b;
  }
};
struct FlooredQuotient {
  static constexpr FunctorName kName = "FlooredQuotient";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    if (b == -1) return Negate()(a);
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};
struct IntegerRemainder {
  static constexpr FunctorName kName = "IntegerRemainder";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const { return b == -1 ? 0 : a % b; }
};
struct FlooredIntegerRemainder {
  static constexpr FunctorName kName = "FlooredIntegerRemainder";
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    const int64_t rest = IntegerRemainder()(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
/// Returns F(a, b). If b is 0, sets the flag and returns 0.
template <class F>
struct Guarded {
  static constexpr FunctorName kName{"Guarded", F::kName};
  static constexpr bool kHeavy = true;
  static constexpr bool kRefersOutside = true;
  ErrorFlag zero;
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0) [[unlikely]] {
      zero.set();
      return 0;
    }
    return F()(a, b);
  }
};

}  // namespace lockstep::functors
