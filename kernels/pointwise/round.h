#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/functors.h"

namespace lockstep::functors {

// Rounding and clamping. T is float or double, and int64_t where noted.

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

}  // namespace lockstep::functors
