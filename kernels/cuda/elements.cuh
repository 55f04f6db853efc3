#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/host_device.h"
#include "core/tensor/dtype.h"

namespace lockstep::cuda {

// Tensor elements in device code, which cannot use the constructors and conversions of
// core/tensor/dtype.h.

__device__ inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
/// The hardware instruction, where there is one, gives a NaN with other bits.
__device__ inline uint16_t float_to_bf16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const auto u = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : rounded);
#endif
}
__device__ inline float half_to_float(uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  Half half;
  half.bits = bits;
  return static_cast<float>(half);
#endif
}
__device__ inline uint16_t float_to_half(float value) {
#if defined(__CUDA_ARCH__)
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return Half(value).bits;
#endif
}

/// Converts a value between any two element types: f16 and bf16 go through f32, floats are
/// truncated to integers, and bool is the comparison with 0.
template <class To, class From>
__device__ inline To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return convert<To>(bf16_to_float(from.bits));
  } else if constexpr (std::is_same_v<From, Half>) {
    return convert<To>(half_to_float(from.bits));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    To to;
    to.bits = float_to_bf16(static_cast<float>(from));
    return to;
  } else if constexpr (std::is_same_v<To, Half>) {
    To to;
    to.bits = float_to_half(static_cast<float>(from));
    return to;
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From(0);
  } else {
    return static_cast<To>(from);
  }
}

/// The type an element of T is computed in: f64 for f64, f32 for the other floating types.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// `size_of`, from the digits of a number: nvcc puts a table that is indexed at run time into each
/// thread's local memory, and writes it there before each look-up.
__device__ inline int64_t element_size(DType dtype) {
  constexpr uint64_t kSizes = [] {
    uint64_t sizes = 0;
    for (int i = 0; i < kDTypeCount; ++i) {
      sizes |= uint64_t{size_of(static_cast<DType>(i))} << (4 * i);
    }
    return sizes;
  }();
  return static_cast<int64_t>(kSizes >> (4 * static_cast<int>(dtype)) & 15);
}

/// Loads an element of a run-time dtype as a T.
template <class T>
__device__ inline T load_as(DType dtype, const void* at) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return convert<T>(*static_cast<const uint8_t*>(at));
    case DType::kI8:
      return convert<T>(*static_cast<const int8_t*>(at));
    case DType::kI16:
      return convert<T>(*static_cast<const int16_t*>(at));
    case DType::kI32:
      return convert<T>(*static_cast<const int32_t*>(at));
    case DType::kI64:
      return convert<T>(*static_cast<const int64_t*>(at));
    case DType::kF16:
      return convert<T>(*static_cast<const Half*>(at));
    case DType::kBF16:
      return convert<T>(*static_cast<const BFloat16*>(at));
    case DType::kF32:
      return convert<T>(*static_cast<const float*>(at));
    default:
      return convert<T>(*static_cast<const double*>(at));
  }
}

template <class T>
__device__ inline void store_as(DType dtype, void* at, T value) {
  switch (dtype) {
    case DType::kBool:
      *static_cast<bool*>(at) = convert<bool>(value);
      return;
    case DType::kU8:
      *static_cast<uint8_t*>(at) = convert<uint8_t>(value);
      return;
    case DType::kI8:
      *static_cast<int8_t*>(at) = convert<int8_t>(value);
      return;
    case DType::kI16:
      *static_cast<int16_t*>(at) = convert<int16_t>(value);
      return;
    case DType::kI32:
      *static_cast<int32_t*>(at) = convert<int32_t>(value);
      return;
    case DType::kI64:
      *static_cast<int64_t*>(at) = convert<int64_t>(value);
      return;
    case DType::kF16:
      *static_cast<Half*>(at) = convert<Half>(value);
      return;
    case DType::kBF16:
      *static_cast<BFloat16*>(at) = convert<BFloat16>(value);
      return;
    case DType::kF32:
      *static_cast<float*>(at) = convert<float>(value);
      return;
    default:
      *static_cast<double*>(at) = convert<double>(value);
  }
}

/// Adjacent elements read or written by instructions of up to 16 bytes, which is all that their
/// place has to be a multiple of.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T at[kCount];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool kConvertsPairs = true;
#else
inline constexpr bool kConvertsPairs = false;
#endif
/// Converts kCount elements; floats to f16 or bf16 in pairs if the GPU has an instruction for it.
template <class To, int kCount, class From>
__device__ inline Pack<To, kCount> converted_pack(const From* from) {
  constexpr bool kBF16 = std::is_same_v<To, BFloat16>, kF16 = std::is_same_v<To, Half>;
  Pack<To, kCount> to;
  if constexpr (kConvertsPairs && (kBF16 || kF16) && std::is_same_v<From, float> &&
                kCount % 2 == 0) {
    uint32_t pairs[kCount / 2];
#pragma unroll
    for (int k = 0; k < kCount / 2; ++k) {
      const float low = from[2 * k], high = from[2 * k + 1];
      if constexpr (kBF16) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[k]) : "f"(high), "f"(low));
      } else {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[k]) : "f"(high), "f"(low));
      }
    }
    std::memcpy(&to, pairs, sizeof(to));
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) to.at[k] = convert<To>(from[k]);
  }
  return to;
}

}  // namespace lockstep::cuda
