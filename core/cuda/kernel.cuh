#pragma once

// What a .cu file says to nvcc and to whatever else compiles it: an emulator brings both of these
// itself.
#ifndef LS_CUDA_KERNEL

/// Begins an entry: `LS_CUDA_KERNEL(name, Params, threads) { ... p ... }` is launched with blocks
/// of at most `threads` threads and takes one parameter `p`, a plain struct of at most 4 KB that
/// host code knows as well. Names are unique over all modules.
#define LS_CUDA_KERNEL(name, Params, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Params p)
/// The same with so few registers that a processor has room for `blocks` of the largest blocks.
#define LS_CUDA_KERNEL_RESIDENT(name, Params, threads, blocks)  \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Params p)

namespace lockstep::cuda {

/// The shared memory that the launch asked for, aligned to 16 bytes; the same for every T.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 ls_dynamic_shared[];
  return reinterpret_cast<T*>(ls_dynamic_shared);
}

}  // namespace lockstep::cuda

#endif
