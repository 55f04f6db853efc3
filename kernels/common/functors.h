#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/elementary.h"
#include "kernels/common/functor_name.h"

namespace lockstep::functors {

// Element-wise functors that several rooms of kernels use; the others are in the headers of their
// families, kernels/pointwise/*.h. A functor's T is float, double or int64_t, whatever the tensor's
// dtype. Truth values are bytes, 0 or 1, as bool tensors store them. kName is the functor's name in
// the names of its GPU kernels. kHeavy marks functors costly enough that the loop is split into
// smaller parts.

/// Functors of f32 whose vectorised body does not handle arguments for which `rare` is true:
/// `exact` computes the results of those.
template <class F, class... A>
concept HasRare = requires(A... a) {
  F::rare(a...);
};

/// Integer arithmetic wraps around, as in ATen.
template <class T>
LS_HOST_DEVICE constexpr T wrapping(std::make_unsigned_t<T> value) {
  return static_cast<T>(value);
}

struct Identity {
  static constexpr FunctorName kName = "Identity";
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
/// x * scale where the mask is set, else 0.
template <class T>
struct MaskedScale {
  static constexpr FunctorName kName = "MaskedScale";
  T scale;
  LS_HOST_DEVICE T operator()(T x, uint8_t mask) const { return mask != 0 ? x * scale : T(0); }
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

}  // namespace lockstep::functors
