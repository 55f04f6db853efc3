#pragma once

#include <cstdint>

#include "kernels/common/functor_name.h"
#include "kernels/pointwise/arithmetic.h"

namespace lockstep::functors {

// Functors of comparisons and predicates. T is float, double or int64_t; truth values are bytes.

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

}  // namespace lockstep::functors
