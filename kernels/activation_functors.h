#pragma once

#include "kernels/functors.h"
#include "kernels/special.h"

namespace lockstep::functors {

// Activations of core/ops/pointwise_piecewise.cc and their slopes. T is float or double, and
// int64_t where said.

/// scale x where x > 0, else factor (e^(rate x) - 1).
template <class T>
struct Elu {
  static constexpr bool kHeavy = true;
  T factor;
  T scale;
  T rate;
  LS_HOST_DEVICE T operator()(T x) const {
    const T bent = elementary::expm1(x * rate) * factor;
    return x > T(0) ? x * scale : bent;
  }
};
/// From elu's argument, or from its result, which has the argument's sign.
template <class T>
struct EluBackward {
  static constexpr bool kHeavy = true;
  T factor;
  T scale;
  T rate;
  bool from_result;
  LS_HOST_DEVICE T operator()(T grad, T x) const {
    const T slope = from_result ? x + factor : factor * elementary::exp(x * rate);
    return grad * (x <= T(0) ? rate * slope : scale);
  }
};
template <class T>
struct LeakyRelu {
  T slope;
  LS_HOST_DEVICE T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
struct PRelu {
  template <class T>
  LS_HOST_DEVICE T operator()(T x, T weight) const {
    return x > T(0) ? x : x * weight;
  }
};
/// value where x <= threshold; T may be int64_t.
template <class T>
struct Threshold {
  T threshold;
  T value;
  LS_HOST_DEVICE T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct HardShrink {
  T bound;
  LS_HOST_DEVICE T operator()(T x) const { return x >= -bound && x <= bound ? T(0) : x; }
};
template <class T>
struct SoftShrink {
  T bound;
  LS_HOST_DEVICE T operator()(T x) const {
    const T inside = x * T(0);  // keeps NaN
    return x > bound ? x - bound : x < -bound ? x + bound : inside;
  }
};
/// clamp(x + 3, 0, 6) / 6.
struct HardSigmoid {
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return Minimum()(Maximum()(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardSwish {
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return x * Minimum()(Maximum()(x + T(3), T(0)), T(6)) / T(6);
  }
};
/// log(1 + e^(beta x)) / beta, x itself where beta x is above the threshold.
template <class T>
struct Softplus {
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
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return Minimum()(x, T(0)) - elementary::log1p(elementary::exp(-std::fabs(x)));
  }
};
/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2). Misra 2019.
struct Mish {
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    const T e = elementary::exp(Minimum()(x, T(20)));
    const T n = e * (e + T(2));
    return x > T(20) ? x : x * (n / (n + T(2)));
  }
};
/// log(x / (1 - x)) of x clamped to [low, high]; NaN stays.
template <class T>
struct Logit {
  static constexpr bool kHeavy = true;
  T low;
  T high;
  LS_HOST_DEVICE T operator()(T x) const {
    const T inside = x < low ? low : x > high ? high : x;
    return elementary::log(inside / (T(1) - inside));
  }
};

}  // namespace lockstep::functors
