#pragma once

#include "kernels/cuda/pointwise.cuh"
#include "kernels/cuda/pointwise_mixed.h"

namespace lockstep::cuda {

/// The elements of a contiguous operand in f32, bf16 or f16 that a thread works on. They are kept
/// as they are read and converted when they are used, so that no read waits for another.
struct MixedInput {
  const char* data;
  DType dtype;
  bool is_one;  ///< one element for all
  float one;
  Pack<uint32_t, 4> packs[kMixedPacks];

  __device__ MixedInput(const DensePointwise& p, int operand)
      : data(p.operands.address[operand]),
        dtype(p.operands.dtype[operand]),
        is_one(p.is_single[operand]),
        one(0) {
    if (!is_one) return;
    one = load_as<float>(dtype, p.operands.is_number[operand]
                                    ? static_cast<const void*>(p.operands.number)
                                    : static_cast<const void*>(data));
  }
  __device__ void read(int r, int64_t pack) {
    if (is_one) return;
    if (dtype == DType::kF32) {
      packs[r] = reinterpret_cast<const Pack<uint32_t, 4>*>(data)[pack];
    } else {
      const auto half = reinterpret_cast<const Pack<uint32_t, 2>*>(data)[pack];
      packs[r].at[0] = half.at[0];
      packs[r].at[1] = half.at[1];
    }
  }
  __device__ float of(int r, int k) const {
    if (is_one) return one;
    if (dtype == DType::kF32) return std::bit_cast<float>(packs[r].at[k]);
    const auto bits = static_cast<uint16_t>(packs[r].at[k / 2] >> (k % 2 * 16));
    return dtype == DType::kBF16 ? bf16_to_float(bits) : half_to_float(bits);
  }
  __device__ float at(int64_t i) const {
    return is_one ? one : load_as<float>(dtype, data + i * element_size(dtype));
  }
};

template <class F, class... In>
__device__ inline void mixed_elements(const DensePointwise& p, In... inputs) {
  const F functor = functor_of<F>(p.operands);
  const DType dtype = p.operands.dtype[0];
  char* const out = p.operands.address[0];
  const int64_t packs = p.numel / kMixedPack;
  const int64_t step = grid_threads() * kMixedPacks;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x * kMixedPacks + threadIdx.x;
  for (int64_t first = begin; first < packs; first += step) {
#pragma unroll
    for (int r = 0; r < kMixedPacks; ++r) {
      const int64_t at = first + r * blockDim.x;
      if (at < packs) (inputs.read(r, at), ...);
    }
#pragma unroll
    for (int r = 0; r < kMixedPacks; ++r) {
      const int64_t at = first + r * blockDim.x;
      if (at >= packs) break;
      float results[kMixedPack];
#pragma unroll
      for (int k = 0; k < kMixedPack; ++k) results[k] = apply(functor, inputs.of(r, k)...);
      if (dtype == DType::kF32) {
        reinterpret_cast<Pack<float, kMixedPack>*>(out)[at] =
            converted_pack<float, kMixedPack>(results);
      } else if (dtype == DType::kBF16) {
        reinterpret_cast<Pack<BFloat16, kMixedPack>*>(out)[at] =
            converted_pack<BFloat16, kMixedPack>(results);
      } else {
        reinterpret_cast<Pack<Half, kMixedPack>*>(out)[at] =
            converted_pack<Half, kMixedPack>(results);
      }
    }
  }
  for (int64_t at = packs * kMixedPack + grid_thread(); at < p.numel; at += grid_threads()) {
    store_as<float>(dtype, out + at * element_size(dtype), apply(functor, inputs.at(at)...));
  }
}

}  // namespace lockstep::cuda

// LS_POINTWISE_MIXED defines pointwise_Add_fff_mixed, for a functor of two inputs.
#define LS_POINTWISE_MIXED(F)                                                        \
  LS_CUDA_KERNEL(pointwise_##F##_fff_mixed, ::lockstep::cuda::DensePointwise, 256) { \
    ::lockstep::cuda::mixed_elements<::lockstep::functors::F>(                       \
        p, ::lockstep::cuda::MixedInput(p, 1), ::lockstep::cuda::MixedInput(p, 2));  \
  }
