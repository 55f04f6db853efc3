#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/functor_name.h"
#include "kernels/common/functors.h"
#include "kernels/common/gamma.h"
#include "kernels/common/special.h"

namespace lockstep::functors {

struct CopySign {
  static constexpr FunctorName kName = "CopySign";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
/// The larger number; NaN if both are NaN.
struct LargerNumber {
  static constexpr FunctorName kName = "LargerNumber";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return a >= b || b != b ? a : b;
  }
};
struct SmallerNumber {
  static constexpr FunctorName kName = "SmallerNumber";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return a <= b || b != b ? a : b;
  }
};
/// 0 below 0, 1 above and `b` at 0; 0 for NaN.
struct Step {
  static constexpr FunctorName kName = "Step";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T side = a > T(0) ? T(1) : T(0);
    return a == T(0) ? b : side;
  }
};

/// Euclid's algorithm on the magnitudes; that of the smallest int64 is 2^63, which wraps to itself.
struct GreatestDivisor {
  static constexpr FunctorName kName = "GreatestDivisor";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    uint64_t x = magnitude(a);
    uint64_t y = magnitude(b);
    while (y != 0) {
      const uint64_t rest = x % y;
      x = y;
      y = rest;
    }
    return wrapping<int64_t>(x);
  }
  LS_HOST_DEVICE static uint64_t magnitude(int64_t x) {
    return x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  }
};
/// The least common multiple, modulo 2^64.
struct LeastMultiple {
  static constexpr FunctorName kName = "LeastMultiple";
  static constexpr bool kHeavy = true;
  LS_HOST_DEVICE int64_t operator()(int64_t a, int64_t b) const {
    const uint64_t divisor = GreatestDivisor::magnitude(GreatestDivisor()(a, b));
    if (divisor == 0) return 0;
    const uint64_t product =
        GreatestDivisor::magnitude(a) / divisor * GreatestDivisor::magnitude(b);
    return wrapping<int64_t>(GreatestDivisor::magnitude(wrapping<int64_t>(product)));
  }
};

/// log2(2^a + 2^b).
struct LogAddExp2 {
  static constexpr FunctorName kName = "LogAddExp2";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T larger = Maximum()(a, b);
    constexpr T kInverseLog2 = static_cast<T>(1.44269504088896340736);
    const T rest = elementary::log1p(elementary::exp2(-std::fabs(a - b))) * kInverseLog2;
    return a == b && std::fabs(a) == std::numeric_limits<T>::infinity() ? a : larger + rest;
  }
};
/// a log(1 + b), but 0 if a is 0 and b is not NaN.
struct XLog1PY {
  static constexpr FunctorName kName = "XLog1PY";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    const T product = a * elementary::log1p(b);
    const T result = a == T(0) ? T(0) : product;
    return b != b ? b : result;
  }
};
struct HurwitzZeta {
  static constexpr FunctorName kName = "HurwitzZeta";
  static constexpr bool kHeavy = true;
  template <class T>
  LS_HOST_DEVICE T operator()(T s, T q) const {
    return static_cast<T>(hurwitz_zeta(static_cast<double>(s), static_cast<double>(q)));
  }
};

/// The neighbour of a in the direction of b.
struct NextAfter {
  static constexpr FunctorName kName = "NextAfter";
  template <class T>
  LS_HOST_DEVICE T operator()(T a, T b) const {
    return std::nextafter(a, b);
  }
};
/// Steps among the numbers of bf16, which are the upper halves of those of f32.
struct NextAfterBF16 {
  static constexpr FunctorName kName = "NextAfterBF16";
  LS_HOST_DEVICE float operator()(float a, float b) const {
    if (a != a || b != b) return a + b;
    if (a == b) return b;
    if (a == 0.0F) return std::copysign(0x1p-133F, b);
    const uint32_t bits = std::bit_cast<uint32_t>(a);
    const bool grows = (a < b) == (a > 0.0F);
    return std::bit_cast<float>(grows ? bits + 0x10000 : bits - 0x10000);
  }
};
/// Steps among the numbers of f16.
struct NextAfterF16 {
  static constexpr FunctorName kName = "NextAfterF16";
  LS_HOST_DEVICE float operator()(float a, float b) const {
    constexpr float kLargest = 65504.0F;
    constexpr float kSmallestNormal = 0x1p-14F;
    constexpr float kSpacingBelow = 0x1p-24F;
    if (a != a || b != b) return a + b;
    if (a == b) return b;
    const float size = std::fabs(a);
    if (size > kLargest) return std::copysign(kLargest, a);
    const bool grows = (a < b) == (a > 0.0F);
    if (size < kSmallestNormal || (size == kSmallestNormal && !grows)) {
      return a + (a < b ? kSpacingBelow : -kSpacingBelow);
    }
    const uint32_t bits = std::bit_cast<uint32_t>(a);
    const float next = std::bit_cast<float>(grows ? bits + 0x2000 : bits - 0x2000);
    return std::fabs(next) > kLargest ? std::copysign(std::numeric_limits<float>::infinity(), a)
                                      : next;
  }
};

/// Whether the sign bit is set; of integers, whether they are negative.
struct SignBit {
  static constexpr FunctorName kName = "SignBit";
  template <class T>
  LS_HOST_DEVICE uint8_t operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? 1 : 0;
    } else {
      return std::signbit(x) ? 1 : 0;
    }
  }
};

}  // namespace lockstep::functors
