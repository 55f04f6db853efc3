#pragma once

#include <cstdint>

#include "core/cuda/kernel.cuh"

namespace lockstep::cuda {

/// Index of this thread in a one-dimensional grid, and number of its threads.
__device__ inline int64_t grid_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t grid_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace lockstep::cuda
