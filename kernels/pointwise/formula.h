#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/common/functors.h"
#include "kernels/common/special.h"
#include "kernels/pointwise/unary.h"

namespace lockstep::functors {

// Formulas of two or three operands. T is float or double, and int64_t where noted.

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
/// -b log(a) - (1 - b) log(1 - a), each logarithm at least -100.
struct BinaryCrossEntropy {
  static constexpr FunctorName kName = "BinaryCrossEntropy";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T with = elementary::log(a);
    const T without = elementary::log1p(-a);
    constexpr T kLeast = -100;
    return (b - 1) * (without < kLeast ? kLeast : without) - b * (with < kLeast ? kLeast : with);
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
