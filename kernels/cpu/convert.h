#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace lockstep::cpu {

/// Element types that inner loops are compiled for. Tensors of other dtypes are converted to and
/// from one of these, a chunk at a time. kByte reads bool and uint8 as they are stored; kBF16 is
/// for loops in f32 that convert each element themselves, where all operands are bf16.
enum class Lane : uint8_t { kF32, kF64, kI64, kByte, kBF16 };

template <class T>
struct LaneOf;
template <>
struct LaneOf<float> {
  static constexpr Lane value = Lane::kF32;
};
template <>
struct LaneOf<double> {
  static constexpr Lane value = Lane::kF64;
};
template <>
struct LaneOf<int64_t> {
  static constexpr Lane value = Lane::kI64;
};
template <>
struct LaneOf<uint8_t> {
  static constexpr Lane value = Lane::kByte;
};
template <class T>
inline constexpr Lane lane_of = LaneOf<T>::value;

constexpr int64_t size_of(Lane lane) {
  constexpr int8_t kSizes[] = {4, 8, 8, 1, 2};
  return kSizes[static_cast<int>(lane)];
}
/// True when memory of `dtype` is memory of `lane`.
constexpr bool is_stored_as(DType dtype, Lane lane) {
  switch (lane) {
    case Lane::kF32:
      return dtype == DType::kF32;
    case Lane::kF64:
      return dtype == DType::kF64;
    case Lane::kI64:
      return dtype == DType::kI64;
    case Lane::kByte:
      return dtype == DType::kBool || dtype == DType::kU8;
    case Lane::kBF16:
      return dtype == DType::kBF16;
  }
  return false;
}
/// The lane that holds every value of `dtype` and in which arithmetic on it is done.
constexpr Lane natural_lane(DType dtype) {
  if (dtype == DType::kF64) return Lane::kF64;
  return is_floating(dtype) ? Lane::kF32 : Lane::kI64;
}

/// Reads n elements, `stride` bytes apart, into contiguous lanes.
using LoadFunction = void (*)(int64_t n, void* to, const void* from, int64_t stride);
/// Writes n contiguous lanes, `stride` bytes apart.
using StoreFunction = void (*)(int64_t n, void* to, int64_t stride, const void* from);

/// Only bf16 is read as lanes of kBF16, and only those are written from them.
LoadFunction load_function(Lane to, DType from);
/// Floats become integers by truncation, booleans by comparison with 0.
StoreFunction store_function(DType to, Lane from);

}  // namespace lockstep::cpu
