#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/factory/copy_units.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

template <class Unit>
__device__ void copy_units(const CopyUnits& p) {
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t at[2];
    p.walk.offsets(i, at);
    *reinterpret_cast<Unit*>(p.to + at[0]) = *reinterpret_cast<const Unit*>(p.from + at[1]);
  }
}

template <class From, class To>
__device__ void convert_elements(const ConvertElements& p) {
  constexpr int kWidth = 4;
  const auto* const from = static_cast<const From*>(p.from);
  auto* const to = static_cast<To*>(p.to);
  for (int64_t i = grid_thread(); i < p.count / kWidth; i += grid_threads()) {
    const auto given = reinterpret_cast<const Pack<From, kWidth>*>(from)[i];
    reinterpret_cast<Pack<To, kWidth>*>(to)[i] = converted_pack<To, kWidth>(given.at);
  }
  const int64_t rest = p.count / kWidth * kWidth + grid_thread();
  if (rest < p.count) to[rest] = convert<To>(from[rest]);
}

}  // namespace

LS_CUDA_KERNEL(copy_units_b1, CopyUnits, 256) { copy_units<uint8_t>(p); }
LS_CUDA_KERNEL(copy_units_b2, CopyUnits, 256) { copy_units<uint16_t>(p); }
LS_CUDA_KERNEL(copy_units_b4, CopyUnits, 256) { copy_units<uint32_t>(p); }
LS_CUDA_KERNEL(copy_units_b8, CopyUnits, 256) { copy_units<uint64_t>(p); }
LS_CUDA_KERNEL(copy_units_b16, CopyUnits, 256) { copy_units<uint4>(p); }
LS_CUDA_KERNEL(copy_f32_to_bf16, ConvertElements, 256) { convert_elements<float, BFloat16>(p); }
LS_CUDA_KERNEL(copy_bf16_to_f32, ConvertElements, 256) { convert_elements<BFloat16, float>(p); }
LS_CUDA_KERNEL(copy_f32_to_f16, ConvertElements, 256) { convert_elements<float, Half>(p); }
LS_CUDA_KERNEL(copy_f16_to_f32, ConvertElements, 256) { convert_elements<Half, float>(p); }

}  // namespace lockstep::cuda
