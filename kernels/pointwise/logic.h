#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/functors.h"

namespace lockstep::functors {

// Logical and bitwise functors. T may be int64_t, and uint8_t for operands stored as bytes.

struct LogicalAnd {
  static constexpr FunctorName kName = "LogicalAnd";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) & (b != T(0)));
  }
};
struct LogicalOr {
  static constexpr FunctorName kName = "LogicalOr";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) | (b != T(0)));
  }
};
struct LogicalXor {
  static constexpr FunctorName kName = "LogicalXor";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return static_cast<uint8_t>((a != T(0)) ^ (b != T(0)));
  }
};
struct IsInfinite {
  static constexpr FunctorName kName = "IsInfinite";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return 0;
    } else {
      return std::fabs(x) == std::numeric_limits<T>::infinity() ? 1 : 0;
    }
  }
};
/// |a - b| <= absolute + relative |b|, or a == b. Unequal integers are compared in float32.
struct IsClose {
  static constexpr FunctorName kName = "IsClose";
  double relative;
  double absolute;
  bool equal_nan;
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T a, T b) const {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Real x = static_cast<Real>(a);
    const Real y = static_cast<Real>(b);
    const Real allowed = static_cast<Real>(absolute) + std::fabs(static_cast<Real>(relative) * y);
    const Real error = std::fabs(x - y);
    const bool near = error <= allowed && error < std::numeric_limits<Real>::infinity();
    const bool both_nan = equal_nan && a != a && b != b;
    const bool tolerant = relative != 0 || absolute != 0;
    return a == b || both_nan || (tolerant && near) ? 1 : 0;
  }
};
struct BitwiseAnd {
  static constexpr FunctorName kName = "BitwiseAnd";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  static constexpr FunctorName kName = "BitwiseOr";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  static constexpr FunctorName kName = "BitwiseXor";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseNot {
  static constexpr FunctorName kName = "BitwiseNot";
  template <class T>
  LS_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
/// x << by for integers of `bits` bits held in int64_t; 0 if by < 0 or by >= bits.
struct ShiftLeft {
  static constexpr FunctorName kName = "ShiftLeft";
  int64_t bits;
  LS_HOST_DEVICE int64_t operator()(int64_t x, int64_t by) const {
    const bool inside = by >= 0 && by < bits;
    return inside ? wrapping<int64_t>(static_cast<uint64_t>(x) << by) : 0;
  }
};
/// Arithmetic shift x >> by; shifts out of range leave only copies of the sign.
struct ShiftRight {
  static constexpr FunctorName kName = "ShiftRight";
  int64_t bits;
  LS_HOST_DEVICE int64_t operator()(int64_t x, int64_t by) const {
    return x >> (by >= 0 && by < bits ? by : bits - 1);
  }
};

}  // namespace lockstep::functors
