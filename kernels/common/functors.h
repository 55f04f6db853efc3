#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/elementary.h"
#include "kernels/common/functor_name.h"

namespace lockstep::functors {

// Element-wise functions of the pointwise operators, shared by all backends. T is float, double or
// int64_t, whatever the tensor's dtype. Truth values are bytes, 0 or 1, as bool tensors store them.
// kName is the functor's name in the names of its GPU kernels.

/// Integer arithmetic wraps around, as in ATen.
template <class T>
LS_HOST_DEVICE constexpr T wrapping(std::make_unsigned_t<T> value) {
  return static_cast<T>(value);
}

struct Same {
  static constexpr FunctorName kName = "Same";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x;
  }
};
/// Returns `value` for every element.
template <class T>
struct Constant {
  static constexpr FunctorName kName = "Constant";
  T value;
  LS_HOST_DEVICE T operator()() const { return value; }
};

struct Add {
  static constexpr FunctorName kName = "Add";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapping<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Subtract {
  static constexpr FunctorName kName = "Subtract";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapping<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    } else {
      return a - b;
    }
  }
};
struct Multiply {
  static constexpr FunctorName kName = "Multiply";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapping<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
/// a + factor * b, with a single rounding.
template <class T>
struct AddScaled {
  static constexpr FunctorName kName = "AddScaled";
  T factor;
  LS_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return Add()(a, Multiply()(factor, b));
    } else {
      return std::fma(factor, b, a);
    }
  }
};
struct Divide {
  static constexpr FunctorName kName = "Divide";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return a / b;
  }
};
/// The larger value; NaN if either is NaN.
struct Maximum {
  static constexpr FunctorName kName = "Maximum";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  static constexpr FunctorName kName = "Minimum";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// A binary functor with `number` as its second operand.
template <class F, class T>
struct WithNumber {
  static constexpr FunctorName kName{"WithNumber", F::kName};
  T number;
  LS_HOST_DEVICE auto operator()(T a) const { return F()(a, number); }
};

struct Equal {
  static constexpr FunctorName kName = "Equal";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};
struct NotEqual {
  static constexpr FunctorName kName = "NotEqual";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a != b ? 1 : 0;
  }
};
struct Less {
  static constexpr FunctorName kName = "Less";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};
struct LessEqual {
  static constexpr FunctorName kName = "LessEqual";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};
struct Greater {
  static constexpr FunctorName kName = "Greater";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a > b ? 1 : 0;
  }
};
struct GreaterEqual {
  static constexpr FunctorName kName = "GreaterEqual";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a >= b ? 1 : 0;
  }
};
struct LogicalNot {
  static constexpr FunctorName kName = "LogicalNot";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    return x == T(0) ? 1 : 0;
  }
};
struct IsNan {
  static constexpr FunctorName kName = "IsNan";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    return x != x ? 1 : 0;
  }
};
struct IsFinite {
  static constexpr FunctorName kName = "IsFinite";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    return Subtract()(x, x) == T(0) ? 1 : 0;  // infinity - infinity is NaN
  }
};

/// condition ? a : b.
struct Where {
  static constexpr FunctorName kName = "Where";
  template <class T>
  LS_HOST_DEVICE T operator()(uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};
template <class T>
struct MaskedFill {
  static constexpr FunctorName kName = "MaskedFill";
  T value;
  LS_HOST_DEVICE T operator()(T x, uint8_t mask) const { return mask != 0 ? value : x; }
};
/// x * scale where the mask is set, else 0.
template <class T>
struct MaskedScale {
  static constexpr FunctorName kName = "MaskedScale";
  T scale;
  LS_HOST_DEVICE T operator()(T x, uint8_t mask) const { return mask != 0 ? x * scale : T(0); }
};

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
struct Relu {
  static constexpr FunctorName kName = "Relu";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x < T(0) ? T(0) : x;  // NaN compares false and is kept
  }
};

// From here on T is float or double. kHeavy marks functors costly enough that the loop is split
// into smaller parts.

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
struct Tanh {
  static constexpr FunctorName kName = "Tanh";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return elementary::tanh(x);
  }
};
struct Sigmoid {
  static constexpr FunctorName kName = "Sigmoid";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return elementary::sigmoid(x);
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

/// x Phi(x), where Phi is the normal distribution function.
struct Gelu {
  static constexpr FunctorName kName = "Gelu";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x * normal_distribution(x).below;
  }
};
struct GeluBackward {
  static constexpr FunctorName kName = "GeluBackward";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T x) const {
    const NormalDistribution<T> normal = normal_distribution(x);
    const T density = T(0.39894228040143267794) * normal.bell;
    return grad * std::fma(x, density, normal.below);
  }
};
/// 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x sigmoid(2 u), which
/// loses no digits when tanh is close to -1. Hendrycks & Gimpel 2016.
struct GeluTanh {
  static constexpr FunctorName kName = "GeluTanh";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE static T twice_u(T x) {
    constexpr double kTwice = 1.59576912160573071;  // 2 sqrt(2/pi)
    return x * std::fma(T(kTwice * 0.044715), x * x, T(kTwice));
  }
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x * elementary::sigmoid(twice_u(x));
  }
};
struct GeluTanhBackward {
  static constexpr FunctorName kName = "GeluTanhBackward";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T x) const {
    constexpr double kTwice = 1.59576912160573071;
    const T s = elementary::sigmoid(GeluTanh::twice_u(x));
    const T slope = std::fma(T(3 * kTwice * 0.044715), x * x, T(kTwice));
    return grad * std::fma(x * slope, s * (T(1) - s), s);
  }
};
struct Silu {
  static constexpr FunctorName kName = "Silu";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return elementary::quotient(x, T(1) + elementary::exp(-x));
  }
};
struct SiluBackward {
  static constexpr FunctorName kName = "SiluBackward";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T x) const {
    const T s = elementary::sigmoid(x);
    return grad * (s * std::fma(x, T(1) - s, T(1)));
  }
};
template <class T>
struct ThresholdBackward {
  static constexpr FunctorName kName = "ThresholdBackward";
  T threshold;
  LS_HOST_DEVICE T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};
struct TanhBackward {
  static constexpr FunctorName kName = "TanhBackward";
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T output) const {
    return grad * std::fma(-output, output, T(1));
  }
};
struct SigmoidBackward {
  static constexpr FunctorName kName = "SigmoidBackward";
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T output) const {
    return grad * ((T(1) - output) * output);
  }
};

}  // namespace lockstep::functors
