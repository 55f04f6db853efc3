// Kernels with races and without, for tests/cuda/race_test.cc. They are part of the emulation
// because only between blocks of such kernels races are found (races.h).

#include "tests/emulation/race_kernels.h"

namespace lockstep::cuda {
namespace {

using emulation::Turned;

__device__ int right() { return static_cast<int>((threadIdx.x + 1) % blockDim.x); }

LS_CUDA_KERNEL(race_none, Turned, 64) {
  __shared__ int at[64];
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  p.out[threadIdx.x] = at[right()];
  __syncthreads();
  at[right()] = 0;
}
LS_CUDA_KERNEL(race_no_barrier, Turned, 64) {
  __shared__ int at[64];
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  p.out[threadIdx.x] = at[right()];
}
LS_CUDA_KERNEL(race_one_barrier_of_two, Turned, 64) {
  __shared__ int at[64];
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  p.out[threadIdx.x] = at[right()];
  at[threadIdx.x] = 0;
}
LS_CUDA_KERNEL(race_dynamic, Turned, 64) {
  int* const at = dynamic_shared<int>();
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  p.out[threadIdx.x] = at[right()];
}
LS_CUDA_KERNEL(race_warp_none, Turned, 32) {
  __shared__ int at[32];
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  p.out[threadIdx.x] = at[right()];
}
LS_CUDA_KERNEL(race_warp, Turned, 64) {
  __shared__ int at[64];
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();  // of two warps
  p.out[threadIdx.x] = at[right()];
}
LS_CUDA_KERNEL(race_blocks, Turned, 1) { *p.count += 1; }
LS_CUDA_KERNEL(race_blocks_none, Turned, 1) { atomicAdd(p.count, 1); }
LS_CUDA_KERNEL(race_last_block_none, Turned, 32) {
  // Each block leaves a number, and the last one adds them.
  __shared__ int before;
  if (threadIdx.x == 0) {
    p.out[blockIdx.x] = static_cast<int>(blockIdx.x);
    __threadfence();
    before = atomicAdd(p.count, 1);
  }
  __syncthreads();
  if (threadIdx.x != 0 || before + 1 != static_cast<int>(gridDim.x)) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += p.out[i];
  *p.count = sum;
}

}  // namespace
}  // namespace lockstep::cuda
