#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace lockstep::cpu {

/// How a bool is stored. It is read as a byte, because a C++ bool with another value than 0 or 1 is
/// undefined behaviour.
struct Truth {
  uint8_t byte;
};
/// How an f16 is stored.
struct HalfWord {
  uint16_t bits;
};

#if defined(__F16C__)
// The builtins of <immintrin.h>, which is half of what a compiler reads for a kernel that is made
// at run time.
using EightHalfWords = short __attribute__((vector_size(16)));
using FourFloats = float __attribute__((vector_size(16)));
inline float float_of(HalfWord half) {
  return __builtin_ia32_vcvtph2ps(EightHalfWords{static_cast<short>(half.bits)})[0];
}
/// Rounded to nearest even.
inline HalfWord half_of(float value) {
  return {static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(FourFloats{value}, 0)[0])};
}
#else
inline float float_of(HalfWord word) {
  Half half;
  half.bits = word.bits;
  return static_cast<float>(half);
}
inline HalfWord half_of(float value) { return {Half(value).bits}; }
#endif

/// An element in another type. Floats become integers by truncation, and truth values by comparison
/// with 0.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, Truth>) {
    return static_cast<To>(value.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, HalfWord>) {
    return converted<To>(float_of(value));
  } else if constexpr (std::is_same_v<To, Truth>) {
    return Truth{static_cast<uint8_t>(value != From(0) ? 1 : 0)};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, HalfWord>) {
    return half_of(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(static_cast<int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// A stored element in the lane of a loop. Lanes of bytes take truth values and uint8 as they are,
/// and elements of other types as 0 or 1.
template <class Lane, class Stored>
Lane in_lane(Stored value) {
  if constexpr (!std::is_same_v<Lane, uint8_t>) {
    return converted<Lane>(value);
  } else if constexpr (std::is_same_v<Stored, Truth>) {
    return value.byte;
  } else if constexpr (std::is_same_v<Stored, uint8_t>) {
    return value;
  } else {
    return converted<Truth>(value).byte;
  }
}
/// What a loop computed in its lane, as it is stored.
template <class Stored, class Lane>
Stored as_stored(Lane value) {
  if constexpr (std::is_same_v<Stored, Truth> && std::is_same_v<Lane, uint8_t>) {
    return Truth{value};
  } else {
    return converted<Stored>(value);
  }
}

}  // namespace lockstep::cpu
