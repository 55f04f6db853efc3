#pragma once

#include "kernels/common/functors.h"
#include "kernels/common/special.h"

namespace lockstep::functors {

// Functors of core/ops/pointwise/*.cc other than those of kernels/common/functors.h, with the same
// rules: T is float, double or, where noted, int64_t.

// Rounding.

struct Floor {
  static constexpr FunctorName kName = "Floor";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  static constexpr FunctorName kName = "Ceil";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return std::ceil(x);
  }
};
struct Truncate {
  static constexpr FunctorName kName = "Truncate";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return std::trunc(x);
  }
};
/// Rounds to the nearest integer, ties to even.
struct RoundToEven {
  static constexpr FunctorName kName = "RoundToEven";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return std::nearbyint(x);
  }
};
/// Rounds to multiples of 1 / scale, or of scale itself.
template <class T>
struct RoundDecimals {
  static constexpr FunctorName kName = "RoundDecimals";
  T scale;
  bool multiples_of_scale;
  LS_HOST_DEVICE T operator()(T x) const {
    return multiples_of_scale ? std::nearbyint(x / scale) * scale
                              : std::nearbyint(x * scale) / scale;
  }
};
struct Fraction {
  static constexpr FunctorName kName = "Fraction";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x - std::trunc(x);
  }
};
template <class T>
struct ReplaceNonFinite {
  static constexpr FunctorName kName = "ReplaceNonFinite";
  T nan;
  T above;
  T below;
  LS_HOST_DEVICE T operator()(T x) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T finite = x == kInfinity ? above : x == -kInfinity ? below : x;
    return x != x ? nan : finite;
  }
};
/// Clamps x to [low, high]; NaN if any of the three is NaN. T may be int64_t.
struct Clamp {
  static constexpr FunctorName kName = "Clamp";
  template <class T>
  LS_HOST_DEVICE T operator()(T x, T low, T high) const {
    // In this order a NaN bound beats a number, and a NaN in x beats everything.
    return Minimum()(Maximum()(x, low), high);
  }
};
template <class T>
struct ClampBetween {
  static constexpr FunctorName kName = "ClampBetween";
  T low;
  T high;
  LS_HOST_DEVICE T operator()(T x) const { return Clamp()(x, low, high); }
};

// Logical and bitwise functors; T may be int64_t, and uint8_t for operands stored as bytes.

struct LogicalAnd {
  static constexpr FunctorName kName = "LogicalAnd";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) & (b != T(0)));
  }
};
struct LogicalOr {
  static constexpr FunctorName kName = "LogicalOr";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) | (b != T(0)));
  }
};
struct LogicalXor {
  static constexpr FunctorName kName = "LogicalXor";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) ^ (b != T(0)));
  }
};
struct IsInfinite {
  static constexpr FunctorName kName = "IsInfinite";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return 0;
    } else {
      return std::fabs(x) == std::numeric_limits<T>::infinity() ? 1 : 0;
    }
  }
};
/// |a - b| <= absolute + relative |b|, or a == b. Unequal integers are compared in float32.
struct IsClose {
  static constexpr FunctorName kName = "IsClose";
  double relative;
  double absolute;
  bool equal_nan;
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Real x = static_cast<Real>(a);
    const Real y = static_cast<Real>(b);
    const Real allowed = static_cast<Real>(absolute) + std::fabs(static_cast<Real>(relative) * y);
    const Real error = std::fabs(x - y);
    const bool near = error <= allowed && error < std::numeric_limits<Real>::infinity();
    const bool both_nan = equal_nan && a != a && b != b;
    const bool tolerant = relative != 0 || absolute != 0;
    return a == b || both_nan || (tolerant && near) ? 1 : 0;
  }
};
struct BitwiseAnd {
  static constexpr FunctorName kName = "BitwiseAnd";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  static constexpr FunctorName kName = "BitwiseOr";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  static constexpr FunctorName kName = "BitwiseXor";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseNot {
  static constexpr FunctorName kName = "BitwiseNot";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
/// x << by for integers of `bits` bits held in int64_t; 0 if by < 0 or by >= bits.
struct ShiftLeft {
  static constexpr FunctorName kName = "ShiftLeft";
  int64_t bits;
  LS_HOST_DEVICE int64_t operator()(int64_t x, int64_t by) const {
    const bool inside = by >= 0 && by < bits;
    return inside ? wrapping<int64_t>(static_cast<uint64_t>(x) << by) : 0;
  }
};
/// Arithmetic shift x >> by; shifts out of range leave only copies of the sign.
struct ShiftRight {
  static constexpr FunctorName kName = "ShiftRight";
  int64_t bits;
  LS_HOST_DEVICE int64_t operator()(int64_t x, int64_t by) const {
    return x >> (by >= 0 && by < bits ? by : bits - 1);
  }
};

// Division. T is float or double; integer division can fail and is in
// kernels/common/integer_division.h.

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

// Formulas of two or three operands; T is float or double, and also int64_t for AddProduct.

/// number - a * factor.
template <class T>
struct SubtractFrom {
  static constexpr FunctorName kName = "SubtractFrom";
  T number;
  T factor;
  LS_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return Subtract()(number, Multiply()(factor, a));
    } else {
      return std::fma(-factor, a, number);
    }
  }
};
/// a + factor * b * c.
template <class T>
struct AddProduct {
  static constexpr FunctorName kName = "AddProduct";
  T factor;
  LS_HOST_DEVICE T operator()(T a, T b, T c) const {
    if constexpr (std::is_integral_v<T>) {
      return Add()(a, Multiply()(Multiply()(factor, b), c));
    } else {
      return std::fma(factor * b, c, a);
    }
  }
};
/// a + factor * b / c.
template <class T>
struct AddQuotient {
  static constexpr FunctorName kName = "AddQuotient";
  T factor;
  LS_HOST_DEVICE T operator()(T a, T b, T c) const { return a + factor * b / c; }
};
/// Linear interpolation from a (weight 0) to b (weight 1), exact at both ends.
struct Interpolate {
  static constexpr FunctorName kName = "Interpolate";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b, T weight) const {
    const T near_a = std::fma(weight, b - a, a);
    const T near_b = std::fma(-(b - a), T(1) - weight, b);
    return std::fabs(weight) < T(0.5) ? near_a : near_b;
  }
};
template <class T>
struct InterpolateAt {
  static constexpr FunctorName kName = "InterpolateAt";
  T weight;
  LS_HOST_DEVICE T operator()(T a, T b) const { return Interpolate()(a, b, weight); }
};
/// sqrt(a^2 + b^2) without intermediate overflow; infinite if either is, even if the other is NaN.
struct Hypotenuse {
  static constexpr FunctorName kName = "Hypotenuse";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE double operator()(double a, double b) const { return std::hypot(a, b); }
  LS_HOST_DEVICE float operator()(float a, float b) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const double x = a;
    const double y = b;
    const float root = static_cast<float>(std::sqrt(std::fma(x, x, y * y)));
    return std::fabs(a) == kInfinity || std::fabs(b) == kInfinity ? kInfinity : root;
  }
};
struct ArcTangent2 {
  static constexpr FunctorName kName = "ArcTangent2";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T y, T x) const {
    return elementary::atan2(y, x);
  }
};
/// log(e^a + e^b).
struct LogAddExp {
  static constexpr FunctorName kName = "LogAddExp";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T larger = Maximum()(a, b);
    const T sum = larger + elementary::log1p(elementary::exp(-std::fabs(a - b)));
    return a == b && std::fabs(a) == std::numeric_limits<T>::infinity() ? a : sum;
  }
};
/// a log b, but 0 if a is 0 and b is not NaN.
struct XLogY {
  static constexpr FunctorName kName = "XLogY";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T product = a * elementary::log(b);
    const T result = a == T(0) ? T(0) : product;
    return b != b ? b : result;
  }
};
struct PowerOf {
  static constexpr FunctorName kName = "PowerOf";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T base, T exponent) const {
    if constexpr (std::is_integral_v<T>) {
      if (exponent >= 0) return IntegerPower{exponent}(base);
      if (base == 1) return 1;
      if (base != -1) return 0;
      return exponent % 2 == 0 ? 1 : -1;
    } else {
      return std::pow(base, exponent);
    }
  }
};
/// number^x for each element x.
template <class T>
struct PowerOfNumber {
  static constexpr FunctorName kName = "PowerOfNumber";
  static constexpr bool kHeavy = true;
  T base;
  LS_HOST_DEVICE T operator()(T exponent) const { return PowerOf()(base, exponent); }
};

}  // namespace lockstep::functors
