#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "core/tensor/dtype.h"
#include "dist/collectives/reduction.h"

namespace lockstep::dist {

using Bytes = std::vector<std::byte>;

/// Calls `body.operator()<T>()` with the dtype's element type; bool is uint8_t.
template <class Body>
auto with_element_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return body.template operator()<uint8_t>();
    case DType::kI8:
      return body.template operator()<int8_t>();
    case DType::kI16:
      return body.template operator()<int16_t>();
    case DType::kI32:
      return body.template operator()<int32_t>();
    case DType::kI64:
      return body.template operator()<int64_t>();
    case DType::kF16:
      return body.template operator()<Half>();
    case DType::kBF16:
      return body.template operator()<BFloat16>();
    case DType::kF32:
      return body.template operator()<float>();
    case DType::kF64:
      break;
  }
  return body.template operator()<double>();
}

/// Accumulator type for elements of type T.
template <class T>
using Computed = std::conditional_t<
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <class C>
C naive_next(ReduceOp op, C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (op == ReduceOp::kSum) return static_cast<C>(x + y);
    if (op == ReduceOp::kProduct) return static_cast<C>(x * y);
  } else {
    if (op == ReduceOp::kSum || op == ReduceOp::kPremultipliedSum) return a + b;
    if (op == ReduceOp::kProduct) return a * b;
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  if (op == ReduceOp::kMin) return b < a ? b : a;
  return b > a ? b : a;
}

/// Element `i` of the sources, reduced one after the other.
template <class T>
Computed<T> naive_element(const Reduction& reduction, std::span<const void* const> sources,
                          size_t i) {
  using C = Computed<T>;
  C value{};
  for (size_t k = 0; k < sources.size(); ++k) {
    T element;
    std::memcpy(&element, static_cast<const std::byte*>(sources[k]) + i * sizeof(T), sizeof(T));
    C next = static_cast<C>(element);
    if constexpr (!std::is_integral_v<C>) {
      if (reduction.op == ReduceOp::kPremultipliedSum) next *= static_cast<C>(reduction.factor);
    }
    value = k == 0 ? next : naive_next(reduction.op, value, next);
  }
  return value;
}

/// Combines `values` by a tree that is divided at the largest power of two.
template <class C>
C naive_tree(ReduceOp op, std::span<const C> values) {
  if (values.size() == 1) return values[0];
  const size_t left = std::bit_floor(values.size() - 1);
  return naive_next(op, naive_tree(op, values.first(left)), naive_tree(op, values.subspan(left)));
}

/// Reference for reductions over the ranks of several hosts: `sources`, by host, are the ranks'.
inline Bytes naive_reduction_over_hosts(DType dtype, const Reduction& reduction,
                                        std::span<const std::vector<const void*>> sources,
                                        int64_t count) {
  return with_element_type(dtype, [&]<class T>() {
    Bytes result(static_cast<size_t>(count) * sizeof(T));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      std::vector<Computed<T>> hosts;
      for (const auto& each : sources) hosts.push_back(naive_element<T>(reduction, each, i));
      const T element = static_cast<T>(naive_tree<Computed<T>>(reduction.op, hosts));
      std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
    }
    return result;
  });
}

/// Reference for `reduce`, element by element.
inline Bytes naive_reduction(DType dtype, const Reduction& reduction,
                             std::span<const void* const> sources, int64_t count) {
  return with_element_type(dtype, [&]<class T>() {
    Bytes result(static_cast<size_t>(count) * sizeof(T));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const T element = static_cast<T>(naive_element<T>(reduction, sources, i));
      std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
    }
    return result;
  });
}

}  // namespace lockstep::dist
