#pragma once

#include <limits>
#include <type_traits>

#include "core/base/host_device.h"

namespace lockstep {

// Associative operations on two scalars or two vectors of them, with their identity element.

template <class T>
struct SumOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() { return 0; }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    return a + b;
  }
};
template <class T>
struct ProductOf {
  using Element = T;
  LS_HOST_DEVICE static constexpr T identity() { return 1; }
  template <class V>
  LS_HOST_DEVICE static V combine(V a, V b) {
    return a * b;
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
