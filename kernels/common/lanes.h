#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace lockstep {

/// Element types that pointwise loops are compiled for, on every backend. Elements of other dtypes
/// are converted to and from one of these. kByte reads bool and uint8 as they are stored; kBF16 is
/// for f32 loops whose operands are all bf16 and which convert each element themselves.
enum class ComputeLane : uint8_t { kF32, kF64, kI64, kByte, kBF16 };

template <class T>
struct LaneOf;
template <>
struct LaneOf<float> {
  static constexpr ComputeLane value = ComputeLane::kF32;
};
template <>
struct LaneOf<double> {
  static constexpr ComputeLane value = ComputeLane::kF64;
};
template <>
struct LaneOf<int64_t> {
  static constexpr ComputeLane value = ComputeLane::kI64;
};
template <>
struct LaneOf<uint8_t> {
  static constexpr ComputeLane value = ComputeLane::kByte;
};
template <class T>
inline constexpr ComputeLane lane_of = LaneOf<T>::value;

constexpr int64_t size_of(ComputeLane lane) {
  constexpr int8_t kSizes[] = {4, 8, 8, 1, 2};
  return kSizes[static_cast<int>(lane)];
}
/// True if memory of `dtype` can be read as `lane` without conversion.
constexpr bool is_stored_as(DType dtype, ComputeLane lane) {
  switch (lane) {
    case ComputeLane::kF32:
      return dtype == DType::kF32;
    case ComputeLane::kF64:
      return dtype == DType::kF64;
    case ComputeLane::kI64:
      return dtype == DType::kI64;
    case ComputeLane::kByte:
      return dtype == DType::kBool || dtype == DType::kU8;
    case ComputeLane::kBF16:
      return dtype == DType::kBF16;
  }
  return false;
}
/// The lane that can represent every value of `dtype` and in which its arithmetic is done.
constexpr ComputeLane natural_lane(DType dtype) {
  if (dtype == DType::kF64) return ComputeLane::kF64;
  return is_floating(dtype) ? ComputeLane::kF32 : ComputeLane::kI64;
}

/// Calls `body.operator()<T>()` with the C++ type of the dtype's natural lane.
template <class Body>
void with_lane(DType dtype, const Body& body) {
  switch (natural_lane(dtype)) {
    case ComputeLane::kF32:
      return body.template operator()<float>();
    case ComputeLane::kF64:
      return body.template operator()<double>();
    default:
      return body.template operator()<int64_t>();
  }
}

/// Calls `body.operator()<T>()` with float or double; the shape rules have checked that the dtype
/// is floating.
template <class Body>
void with_floating_lane(DType dtype, const Body& body) {
  if (dtype == DType::kF64) {
    body.template operator()<double>();
  } else {
    body.template operator()<float>();
  }
}

}  // namespace lockstep
