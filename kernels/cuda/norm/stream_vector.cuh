#pragma once

#include "kernels/cuda/norm/norm_vector.cuh"
#include "kernels/cuda/norm/stream_norm.h"

namespace lockstep::cuda {

// Tensors beside a stream of T: in T, or in bf16 or f16 beside f32. The dtype is the same for all
// threads, so a pack is one load or store in either case.

/// to[k] = from[at + k].
template <int kPack, class T, class C>
__device__ inline void load_beside(DType dtype, const void* from, int64_t at, C* to) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::kBF16) return load_pack<kPack>(static_cast<const BFloat16*>(from) + at, to);
    if (dtype == DType::kF16) return load_pack<kPack>(static_cast<const Half*>(from) + at, to);
  }
  load_pack<kPack>(static_cast<const T*>(from) + at, to);
}
template <int kPack, class T, class C>
__device__ inline void store_beside(DType dtype, void* to, int64_t at, const C* from) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::kBF16) return store_pack<kPack>(static_cast<BFloat16*>(to) + at, from);
    if (dtype == DType::kF16) return store_pack<kPack>(static_cast<Half*>(to) + at, from);
  }
  store_pack<kPack>(static_cast<T*>(to) + at, from);
}

}  // namespace lockstep::cuda
