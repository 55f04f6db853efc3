#pragma once

#include "kernels/common/functors.h"
#include "kernels/common/special.h"

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

/// GELU x P(X < x) for bf16 results, in f32 and without a division. The relative error is 1e-4,
/// also in the small tail: 1/30 of the error of rounding to bf16. P(X < -a) is 2^p(a), where p is
/// our minimax polynomial for its log2; beyond 14.5 the result is 0 in bf16.
struct GeluBF16 {
  static constexpr FunctorName kName = "GeluBF16";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE float operator()(float x) const {
    const float size = std::fabs(x);
    const float a = size < 14.5F ? size : 14.5F;
    float p = -1.41803293e-09F;
    p = std::fma(p, a, 1.10793626e-07F);
    p = std::fma(p, a, -3.78534541e-06F);
    p = std::fma(p, a, 7.47392022e-05F);
    p = std::fma(p, a, -9.53071816e-04F);
    p = std::fma(p, a, 8.36435064e-03F);
    p = std::fma(p, a, -5.32011653e-02F);
    p = std::fma(p, a, -4.59734337e-01F);
    p = std::fma(p, a, -1.15052859e+00F);
    p = std::fma(p, a, 30.9999355F);  // larger by 32, so that 2^p is not subnormal
    const float shifted = p + detail::kRound;
    const float f = p - (shifted - detail::kRound);
    float e = 9.68571083e-03F;
    e = std::fma(e, f, 5.59220252e-02F);
    e = std::fma(e, f, 2.40218655e-01F);
    e = std::fma(e, f, 6.93121036e-01F);
    e = std::fma(e, f, 1.0F);
    const float tail =
        std::bit_cast<float>(std::bit_cast<uint32_t>(e) + (std::bit_cast<uint32_t>(shifted) << 23));
    const float above = x < 0.0F ? x * 0.0F : x;  // GELU(x) = above - a tail; x * 0 gives NaN for
                                                  // -infinity
    return std::fma(a * tail, -0x1p-32F, above);
  }
};

}  // namespace lockstep::functors
