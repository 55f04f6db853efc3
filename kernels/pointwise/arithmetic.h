#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/functors.h"

namespace lockstep::functors {

// Functors of arithmetic operators. T is float, double or int64_t; Divide is not used with int64_t.
// Add, Multiply, Maximum and Minimum are in kernels/common/functors.h.

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
/// A binary functor with `number` as its second operand.
template <class F, class T>
struct WithNumber {
  static constexpr FunctorName kName{"WithNumber", F::kName};
  T number;
  LS_HOST_DEVICE auto operator()(T a) const { return F()(a, number); }
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

}  // namespace lockstep::functors
