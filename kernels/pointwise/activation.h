#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/common/functors.h"

namespace lockstep::functors {

// Activation functions that are not piecewise (piecewise.h), except Relu, and their derivatives. T
// is float or double, and also int64_t for Relu and ThresholdBackward. GeluTanh is in
// kernels/common/functors.h.

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
struct Relu {
  static constexpr FunctorName kName = "Relu";
  /// 0, which the compiler does not know: it makes one maximum of the comparison, where it makes a
  /// comparison and a masked move of one with the constant.
  float zero = 0;
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    const T bound = static_cast<T>(zero);
    return x < bound ? bound : x;  // NaN and -0.0 are not less, and are kept
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
/// silu(gate) * up.
struct Swiglu {
  static constexpr FunctorName kName = "Swiglu";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T gate, T up) const {
    return Silu()(gate) * up;
  }
};
/// The gradient of its gate.
struct SwigluBackward {
  static constexpr FunctorName kName = "SwigluBackward";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T grad, T gate, T up) const {
    return SiluBackward()(grad * up, gate);
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
