#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/functors.h"
#include "kernels/common/special.h"
#include "kernels/pointwise/activation.h"

namespace lockstep::functors {

// Activation functions of core/ops/pointwise/pointwise_piecewise.cc and their derivatives. T is
// float or double, and int64_t where noted.

/// scale x where x > 0, else factor (e^(rate x) - 1).
template <class T>
struct Elu {
  static constexpr FunctorName kName = "Elu";
  static constexpr bool kHeavy = true;
  T factor;
  T scale;
  T rate;
  LS_HOST_DEVICE T operator()(T x) const {
    const T bent = elementary::expm1(x * rate) * factor;
    return x > T(0) ? x * scale : bent;
  }
};
/// Gradient of elu from its argument or from its result, which has the argument's sign.
template <class T>
struct EluBackward {
  static constexpr FunctorName kName = "EluBackward";
  static constexpr bool kHeavy = true;
  T factor;
  T scale;
  T rate;
  bool from_result;
  LS_HOST_DEVICE T operator()(T grad, T x) const {
    const T slope = from_result ? x + factor : factor * elementary::exp(x * rate);
    return grad * (x > T(0) ? scale : rate * slope);  // NaN compares false and propagates
  }
};
template <class T>
struct LeakyRelu {
  static constexpr FunctorName kName = "LeakyRelu";
  T slope;
  LS_HOST_DEVICE T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
struct PRelu {
  static constexpr FunctorName kName = "PRelu";
  template <class T>
  LS_HOST_DEVICE T operator()(T x, T weight) const {
    return x > T(0) ? x : x * weight;
  }
};
/// x if x > threshold, else value; T may be int64_t.
template <class T>
struct Threshold {
  static constexpr FunctorName kName = "Threshold";
  T threshold;
  T value;
  LS_HOST_DEVICE T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct HardShrink {
  static constexpr FunctorName kName = "HardShrink";
  T bound;
  LS_HOST_DEVICE T operator()(T x) const { return x >= -bound && x <= bound ? T(0) : x; }
};
template <class T>
struct SoftShrink {
  static constexpr FunctorName kName = "SoftShrink";
  T bound;
  LS_HOST_DEVICE T operator()(T x) const {
    const T inside = x * T(0);  // 0, or NaN if x is NaN
    return x > bound ? x - bound : x < -bound ? x + bound : inside;
  }
};
/// clamp(x + 3, 0, 6) / 6.
struct HardSigmoid {
  static constexpr FunctorName kName = "HardSigmoid";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return Minimum()(Maximum()(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardSwish {
  static constexpr FunctorName kName = "HardSwish";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x * Minimum()(Maximum()(x + T(3), T(0)), T(6)) / T(6);
  }
};
/// log(1 + e^(beta x)) / beta, or x if beta x is above the threshold.
template <class T>
struct Softplus {
  static constexpr FunctorName kName = "Softplus";
  static constexpr bool kHeavy = true;
  T beta;
  T threshold;
  LS_HOST_DEVICE T operator()(T x) const {
    const T z = x * beta;
    const T bent = (Relu()(z) + elementary::log1p(elementary::exp(-std::fabs(z)))) / beta;
    return z > threshold ? x : bent;
  }
};
/// -log(1 + e^-x).
struct LogSigmoid {
  static constexpr FunctorName kName = "LogSigmoid";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return Minimum()(x, T(0)) - elementary::log1p(elementary::exp(-std::fabs(x)));
  }
};
/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2). Misra 2019.
struct Mish {
  static constexpr FunctorName kName = "Mish";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    const T e = elementary::exp(Minimum()(x, T(20)));
    const T n = e * (e + T(2));
    return x > T(20) ? x : x * (n / (n + T(2)));
  }
};
/// log(x / (1 - x)) of x clamped to [low, high]; NaN propagates.
template <class T>
struct Logit {
  static constexpr FunctorName kName = "Logit";
  static constexpr bool kHeavy = true;
  T low;
  T high;
  LS_HOST_DEVICE T operator()(T x) const {
    const T inside = x < low ? low : x > high ? high : x;
    return elementary::log(inside / (T(1) - inside));
  }
};

}  // namespace lockstep::functors
