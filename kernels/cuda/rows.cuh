#pragma once

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rows.h"

namespace lockstep::cuda {

// Processing of contiguous rows, each by a group of threads: a warp or a block.

struct WarpRows {
  static constexpr int kThreads = kWarpThreads;
  __device__ static int thread() { return lane_index(); }
  __device__ static int64_t first() {
    int warp = warp_index();
#if defined(__CUDA_ARCH__)
    // nvcc keeps what a shuffle has made equal in all lanes in uniform registers.
    warp = __shfl_sync(kAllLanes, warp, 0);
#endif
    return int64_t{blockIdx.x} * warp_count() + warp;
  }
  __device__ static int64_t step() { return int64_t{gridDim.x} * warp_count(); }
  template <class Op>
  __device__ static typename Op::Element combine(typename Op::Element value) {
    return warp_join<Op>(value);
  }
};
struct BlockRows {
  static constexpr int kThreads = kRowThreads;
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int64_t first() { return blockIdx.x; }
  __device__ static int64_t step() { return gridDim.x; }
  template <class Op>
  __device__ static typename Op::Element combine(typename Op::Element value) {
    return block_join<Op>(value);
  }
};

template <int kCount>
struct Width {
  static constexpr int kPack = kCount;
};

/// to[k] = from[k], converted; a single 16-byte load if kPack elements are 16 bytes.
template <int kPack, class T, class C>
__device__ inline void load_pack(const T* from, C* to) {
  const auto pack = *reinterpret_cast<const Pack<T, kPack>*>(from);
#pragma unroll
  for (int k = 0; k < kPack; ++k) to[k] = convert<C>(pack.at[k]);
}
template <int kPack, class T, class C>
__device__ inline void store_pack(T* to, const C* from) {
  *reinterpret_cast<Pack<T, kPack>*>(to) = converted_pack<T, kPack>(from);
}
/// Stores a pack of elements of a run-time dtype, usually that of T. `to` is the tensor's first
/// element and `at` the index of the pack's first.
template <int kPack, class T, class C>
__device__ inline void store_pack(DType dtype, void* to, int64_t at, const C* from) {
  if (dtype == dtype_of<T>) {
    store_pack<kPack>(static_cast<T*>(to) + at, from);
  } else {
    char* const bytes = static_cast<char*>(to) + at * element_size(dtype);
#pragma unroll
    for (int k = 0; k < kPack; ++k) store_as(dtype, bytes + k * element_size(dtype), from[k]);
  }
}

/// A thread's part of a row of at most kThreads * kEach elements, held in registers as packs of
/// kPack adjacent elements. The row's length must be a multiple of kPack.
template <class T, class Group, int kPack, int kEach>
struct HeldRow {
  using C = ComputeType<T>;
  C at[kEach];

  /// Index in the row of the thread's i-th element.
  __device__ static int index(int i) {
    return (i / kPack * Group::kThreads + Group::thread()) * kPack + i % kPack;
  }
  /// Loads the row; elements past its end become `absent`.
  __device__ void load(const T* row, int n, C absent) {
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (index(i) < n) {
        load_pack<kPack>(row + index(i), at + i);
      } else {
#pragma unroll
        for (int k = 0; k < kPack; ++k) at[i + k] = absent;
      }
    }
  }
  __device__ void store(DType dtype, void* to, int64_t row, int n) const {
#if defined(__CUDA_ARCH__)
    // Hides that the row is the one that was loaded: its addresses are computed again here, where
    // nvcc would keep them in local memory while the row fills the registers.
    asm("" : "+l"(row));
#endif
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (index(i) < n) store_pack<kPack, T>(dtype, to, row * n + index(i), at + i);
    }
  }
  template <class Op>
  __device__ C combine() const {
    C joined = at[0];
#pragma unroll
    for (int i = 1; i < kEach; ++i) joined = Op::combine(joined, at[i]);
    return Group::template combine<Op>(joined);
  }
};

/// Visits the elements of a row, at any address, with the threads of a group: visit(i, Width<k>)
/// for the k elements from i on. Packs with k > 1 are aligned 16-byte units.
template <class T, class Group, class Visit>
__device__ inline void each_pack(const T* row, int64_t n, const Visit& visit) {
  constexpr int kPack = 16 / sizeof(T);
  const auto behind = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T));
  const int64_t before = behind == 0 ? 0 : kPack - behind;
  const int64_t head = before < n ? before : n;
  const int64_t packs = (n - head) / kPack;
  if (Group::thread() < head) visit(int64_t{Group::thread()}, Width<1>());
  for (int64_t i = Group::thread(); i < packs; i += Group::kThreads) {
    visit(head + i * kPack, Width<kPack>());
  }
  const int64_t last = head + packs * kPack + Group::thread();
  if (last < n) visit(last, Width<1>());
}

/// True if two rows of T have the same misalignment, so that one `each_pack` can visit both.
__device__ inline bool alike(const void* a, const void* b) {
  return (reinterpret_cast<uintptr_t>(a) - reinterpret_cast<uintptr_t>(b)) % 16 == 0;
}

}  // namespace lockstep::cuda

// The kernels of one family, for each RowStrategy and floating dtype. Held<T, Group, kPack, kEach>
// and Stream<T> are functions that take the arguments.
#define LS_ROW_KERNEL(Name, Params, ...) \
  LS_CUDA_KERNEL(Name, Params, ::lockstep::cuda::kRowThreads) { __VA_ARGS__(p); }
#define LS_RESIDENT_ROW_KERNEL(Name, Params, blocks, ...) \
  LS_CUDA_KERNEL_RESIDENT(Name, Params, ::lockstep::cuda::kRowThreads, blocks) { __VA_ARGS__(p); }
// Three resident blocks of 256 threads with 32 elements each are needed to saturate memory.
#define LS_HELD_ROW_KERNEL(Name, Params, ...) LS_RESIDENT_ROW_KERNEL(Name, Params, 3, __VA_ARGS__)
#define LS_HELD_SCALAR_ROW_KERNELS(Name, Params, T, Suffix, Held)                                  \
  LS_ROW_KERNEL(Name##_##Suffix##_warp_scalar, Params, Held<T, ::lockstep::cuda::WarpRows, 1, 32>) \
  LS_ROW_KERNEL(Name##_##Suffix##_block_scalar, Params, Held<T, ::lockstep::cuda::BlockRows, 1, 32>)
#define LS_SCALAR_ROW_KERNELS(Name, Params, T, Suffix, Held, Stream) \
  LS_HELD_SCALAR_ROW_KERNELS(Name, Params, T, Suffix, Held)          \
  LS_ROW_KERNEL(Name##_##Suffix##_stream, Params, Stream<T>)
#define LS_PACKED_ROW_KERNELS(Name, Params, T, Suffix, kPack, Held, Stream)                       \
  LS_SCALAR_ROW_KERNELS(Name, Params, T, Suffix, Held, Stream)                                    \
  LS_ROW_KERNEL(Name##_##Suffix##_warp8, Params, Held<T, ::lockstep::cuda::WarpRows, kPack, 8>)   \
  LS_HELD_ROW_KERNEL(Name##_##Suffix##_warp32, Params,                                            \
                     Held<T, ::lockstep::cuda::WarpRows, kPack, 32>)                              \
  LS_ROW_KERNEL(Name##_##Suffix##_block8, Params, Held<T, ::lockstep::cuda::BlockRows, kPack, 8>) \
  LS_HELD_ROW_KERNEL(Name##_##Suffix##_block32, Params,                                           \
                     Held<T, ::lockstep::cuda::BlockRows, kPack, 32>)
// All but f64.
#define LS_FLOAT_ROW_KERNELS(Name, Params, Held, Stream)                           \
  LS_PACKED_ROW_KERNELS(Name, Params, float, f32, 4, Held, Stream)                 \
  LS_PACKED_ROW_KERNELS(Name, Params, ::lockstep::BFloat16, bf16, 8, Held, Stream) \
  LS_PACKED_ROW_KERNELS(Name, Params, ::lockstep::Half, f16, 8, Held, Stream)
#define LS_ROW_KERNELS(Name, Params, Held, Stream) \
  LS_FLOAT_ROW_KERNELS(Name, Params, Held, Stream) \
  LS_SCALAR_ROW_KERNELS(Name, Params, double, f64, Held, Stream)
