#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace lockstep::cpu {

/// Calls `f.template operator()<T>()` with the C++ type of `dtype`.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f.template operator()<bool>();
    case DType::kU8:
      return f.template operator()<uint8_t>();
    case DType::kI8:
      return f.template operator()<int8_t>();
    case DType::kI16:
      return f.template operator()<int16_t>();
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
  }
  throw InternalError("[internal] unknown dtype.");
}
/// Calls `f.template operator()<T>()` with the C++ type of a floating dtype, as the shape rules
/// have ensured.
template <class F>
decltype(auto) with_floating_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    default:
      throw InternalError("[internal] a floating dtype was expected.");
  }
}
/// Calls `f` with an unsigned type of the element's size, for kernels that only move elements.
template <class F>
decltype(auto) with_bits(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

/// The type a floating element is computed in: f64 for f64, f32 for the others.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Converts a value between any two element types; f16 and bf16 go through f32.
template <class To, class From>
inline To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From(0);
  } else {
    return static_cast<To>(from);
  }
}

/// Returns x[0, n) in the compute type: x itself, or a converted copy in `buffer`.
template <class T>
const ComputeType<T>* read_row(const T* x, int64_t n, ComputeType<T>* buffer) {
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    return x;
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(x[i]);
    return buffer;
  }
}
/// Returns where to compute the row stored in y: y itself, or `buffer`, which `finish_row`
/// converts.
template <class T>
ComputeType<T>* row_target(T* y, ComputeType<T>* buffer) {
  if constexpr (std::is_same_v<T, ComputeType<T>>) return y;
  return buffer;
}
template <class T>
void finish_row(T* y, const ComputeType<T>* computed, int64_t n) {
  if constexpr (!std::is_same_v<T, ComputeType<T>>) {
    for (int64_t i = 0; i < n; ++i) y[i] = T(computed[i]);
  }
}

}  // namespace lockstep::cpu
