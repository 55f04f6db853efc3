#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/functors.h"
#include "kernels/pointwise/arithmetic.h"

namespace lockstep::functors {

// Functors of operators with one operand. T is float or double, and also int64_t for Negate,
// Absolute, Square and Sign. kHeavy marks functors costly enough that the loop is split into
// smaller parts.

struct Negate {
  static constexpr FunctorName kName = "Negate";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return Subtract()(T(0), x);
    } else {
      return -x;
    }
  }
};
struct Absolute {
  static constexpr FunctorName kName = "Absolute";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? Negate()(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
struct Square {
  static constexpr FunctorName kName = "Square";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return Multiply()(x, x);
  }
};
struct Cube {
  static constexpr FunctorName kName = "Cube";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x * x * x;
  }
};
struct Sign {
  static constexpr FunctorName kName = "Sign";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>((x > T(0) ? 1 : 0) - (x < T(0) ? 1 : 0));
  }
};
struct Sqrt {
  static constexpr FunctorName kName = "Sqrt";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct ReciprocalSqrt {
  static constexpr FunctorName kName = "ReciprocalSqrt";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Reciprocal {
  static constexpr FunctorName kName = "Reciprocal";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return T(1) / x;
  }
};
struct Exp {
  static constexpr FunctorName kName = "Exp";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return elementary::exp(x);
  }
};
struct Log {
  static constexpr FunctorName kName = "Log";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return elementary::log(x);
  }
};
/// The vectorised body does not handle arguments for which `rare` is true: `exact` computes those.
struct Sin {
  static constexpr FunctorName kName = "Sin";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE float operator()(float x) const { return sincos_f32(x).sine; }
  LS_HOST_DEVICE double operator()(double x) const { return std::sin(x); }
  LS_HOST_DEVICE static bool rare(float x) { return !(std::fabs(x) <= kMaxAngleF32); }
  LS_HOST_DEVICE static float exact(float x) {
    return static_cast<float>(std::sin(static_cast<double>(x)));
  }
};
struct Cos {
  static constexpr FunctorName kName = "Cos";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE float operator()(float x) const { return sincos_f32(x).cosine; }
  LS_HOST_DEVICE double operator()(double x) const { return std::cos(x); }
  LS_HOST_DEVICE static bool rare(float x) { return !(std::fabs(x) <= kMaxAngleF32); }
  LS_HOST_DEVICE static float exact(float x) {
    return static_cast<float>(std::cos(static_cast<double>(x)));
  }
};
/// x^exponent in f64, for exponents that have no functor of their own.
template <class T>
struct Power {
  static constexpr FunctorName kName = "Power";
  static constexpr bool kHeavy = true;
  double exponent;
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(std::pow(static_cast<double>(x), exponent));
  }
};
/// x^exponent for an exponent >= 0, wrapping around.
struct IntegerPower {
  static constexpr FunctorName kName = "IntegerPower";
  static constexpr bool kHeavy = true;
  int64_t exponent;
  LS_HOST_DEVICE int64_t operator()(int64_t x) const {
    int64_t result = 1;
    for (int64_t e = exponent; e > 0; e >>= 1) {
      if ((e & 1) != 0) result = Multiply()(result, x);
      x = Multiply()(x, x);
    }
    return result;
  }
};

}  // namespace lockstep::functors
