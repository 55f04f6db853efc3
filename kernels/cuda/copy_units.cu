#include "kernels/cuda/copy_units.h"
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

}  // namespace

LS_CUDA_KERNEL(copy_units_1, CopyUnits, 256) { copy_units<uint8_t>(p); }
LS_CUDA_KERNEL(copy_units_2, CopyUnits, 256) { copy_units<uint16_t>(p); }
LS_CUDA_KERNEL(copy_units_4, CopyUnits, 256) { copy_units<uint32_t>(p); }
LS_CUDA_KERNEL(copy_units_8, CopyUnits, 256) { copy_units<uint64_t>(p); }
LS_CUDA_KERNEL(copy_units_16, CopyUnits, 256) { copy_units<uint4>(p); }

}  // namespace lockstep::cuda
