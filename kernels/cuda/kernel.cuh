#pragma once

#include <cstdint>

#include "core/cuda/kernel.cuh"

namespace lockstep::cuda {

/// Number of this thread in the grid, and of all threads: one-dimensional grids and blocks.
__device__ inline int64_t grid_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t grid_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace lockstep::cuda
