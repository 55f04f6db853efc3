#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/cuda/kernel.cuh"
#include "kernels/common/joins.h"

namespace lockstep::cuda {

// Reductions over the threads of a warp or block, in a fixed order. `Op` has `Element`, trivially
// copyable and a multiple of 4 bytes, and a commutative `combine`, like the structs of
// kernels/common/joins.h.

inline constexpr int kWarpThreads = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;
/// Most warps that `block_join` supports.
inline constexpr int kMostWarps = 32;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % kWarpThreads); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / kWarpThreads); }
__device__ inline int warp_count() { return static_cast<int>(blockDim.x / kWarpThreads); }

/// Value of the lane whose index differs in `bits` (xor shuffle).
template <class T>
__device__ inline T other_lane(T value, int bits) {
  if constexpr (std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) {
    return __shfl_xor_sync(kAllLanes, value, bits);
  } else {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
    uint32_t words[sizeof(T) / 4];
    std::memcpy(words, &value, sizeof(T));
    for (uint32_t& word : words) word = __shfl_xor_sync(kAllLanes, word, bits);
    std::memcpy(&value, words, sizeof(T));
    return value;
  }
}

/// Reduces each group of `kLanes` adjacent lanes (a power of two); every lane gets the result.
template <class Op, int kLanes = kWarpThreads>
__device__ inline typename Op::Element warp_join(typename Op::Element value) {
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0);
  for (int bits = kLanes / 2; bits > 0; bits /= 2) {
    value = Op::combine(value, other_lane(value, bits));
  }
  return value;
}

/// Reduces over the block, whose size must be a multiple of 32; every thread gets the result.
template <class Op>
__device__ inline typename Op::Element block_join(typename Op::Element value) {
  __shared__ typename Op::Element of_warps[kMostWarps];
  value = warp_join<Op>(value);
  if (lane_index() == 0) of_warps[warp_index()] = value;
  __syncthreads();
  value = of_warps[0];
  for (int i = 1; i < warp_count(); ++i) value = Op::combine(value, of_warps[i]);
  __syncthreads();  // the next call overwrites of_warps
  return value;
}

template <class T>
__device__ inline T warp_sum(T value) {
  return warp_join<SumOf<T>>(value);
}
template <class T>
__device__ inline T block_sum(T value) {
  return block_join<SumOf<T>>(value);
}
/// Maximum over the warp, NaN if there is one.
template <class T>
__device__ inline T warp_largest(T value) {
  return warp_join<LargestOf<T>>(value);
}
template <class T>
__device__ inline T block_largest(T value) {
  return block_join<LargestOf<T>>(value);
}

}  // namespace lockstep::cuda
