#pragma once

#include <limits>
#include <type_traits>

#include "core/base/host_device.h"

namespace lockstep {

namespace detail {

/// The unsigned type of V's shape, for a signed integer or a vector of them; else V.
template <class T, class V>
struct ArithmeticOf {
  using type = V;
};
template <class T, class V>
requires(std::is_integral_v<T>&& std::is_signed_v<T>&&
             std::is_arithmetic_v<V>) struct ArithmeticOf<T, V> {
  using type = std::make_unsigned_t<V>;
};
#if !defined(__CUDACC__)
template <class T, class V>
requires(std::is_integral_v<T>&& std::is_signed_v<T> &&
         !std::is_arithmetic_v<V>) struct ArithmeticOf<T, V> {
  typedef std::make_unsigned_t<T> type __attribute__((vector_size(sizeof(V))));
};
#endif

}  // namespace detail

// Associative operations on two scalars or two vectors of them, with their identity element.

// Sums and products of integers wrap around, as in ATen.
template <class T>
struct SumOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() { return 0; }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    using A = typename detail::ArithmeticOf<T, V>::type;
    return (V)((A)a + (A)b);
  }
};
template <class T>
struct ProductOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() { return 1; }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    using A = typename detail::ArithmeticOf<T, V>::type;
    return (V)((A)a * (A)b);
  }
};
/// The larger of two; NaN if either is NaN.
template <class T>
struct LargestOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
template <class T>
struct SmallestOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

}  // namespace lockstep
