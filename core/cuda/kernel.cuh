#pragma once

// Declarations of kernels for nvcc. An emulator that compiles .cu files defines both of these
// itself.
#ifndef LS_CUDA_KERNEL

/// Begins a kernel: `LS_CUDA_KERNEL(name, Params, threads) { ... p ... }` is launched with blocks
/// of at most `threads` threads and takes one parameter `p`, a plain struct of at most 4 KB that
/// host code shares. Names are unique over all modules.
#define LS_CUDA_KERNEL(name, Params, threads) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Params p)
/// Like LS_CUDA_KERNEL, with few enough registers that `blocks` of the largest blocks are resident
/// on a multiprocessor.
#define LS_CUDA_KERNEL_RESIDENT(name, Params, threads, blocks)  \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      name(const __grid_constant__ Params p)

namespace lockstep::cuda {

/// The dynamic shared memory of the launch, aligned to 16 bytes; the same address for every T.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 ls_dynamic_shared[];
  return reinterpret_cast<T*>(ls_dynamic_shared);
}

}  // namespace lockstep::cuda

#endif
