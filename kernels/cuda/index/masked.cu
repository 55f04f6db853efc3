#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/index/masked.h"

namespace lockstep::cuda {

namespace {

constexpr int kThreads = 256;

__device__ const char* element_at(const void* data, int64_t i, DType dtype) {
  return static_cast<const char*>(data) + i * element_size(dtype);
}

__device__ bool is_chosen(const FindChosen& p, int64_t i) {
  if (i >= p.count) return false;
  int64_t at[1];
  p.walk.offsets(i, at);
  return load_as<bool>(p.dtype, element_at(p.mask, at[0], p.dtype));
}

/// Exclusive prefix sum over the block's threads; `total` is the sum over all.
__device__ int64_t sum_before(int64_t value, int64_t& total) {
  __shared__ int64_t of_warps[kThreads / 32];
  int64_t sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int64_t other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane_index() >= step) sum += other;
  }
  if (lane_index() == 31) of_warps[warp_index()] = sum;
  __syncthreads();
  int64_t before = sum - value;
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp_index()) before += of_warps[w];
    total += of_warps[w];
  }
  __syncthreads();  // the next call overwrites of_warps
  return before;
}

template <class Unit>
__device__ void read_chosen(const ReadChosen& p) {
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t at[1];
    p.walk.offsets(p.chosen[i], at);
    static_cast<Unit*>(p.to)[i] = static_cast<const Unit*>(p.from)[at[0]];
  }
}

template <class Unit>
__device__ void write_chosen(const WriteChosen& p) {
  const int64_t wanted = *p.num_chosen;
  if (wanted > p.count && grid_thread() == 0) note_fault(p.fault, p.count, wanted, wanted + 1);
  const int64_t count = wanted < p.count ? wanted : p.count;
  for (int64_t i = grid_thread(); i < count; i += grid_threads()) {
    static_cast<Unit*>(p.to)[p.chosen[i]] = static_cast<const Unit*>(p.from)[i];
  }
}

template <class T>
__device__ void compare(const Compare& p) {
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t at[2];
    p.walk.offsets(i, at);
    const T a = load_as<T>(p.dtype, element_at(p.a, at[0], p.dtype));
    const T b = load_as<T>(p.dtype, element_at(p.b, at[1], p.dtype));
    if (a != b) *p.differs = 1;
  }
}

}  // namespace

LS_CUDA_KERNEL(masked_count, FindChosen, kThreads) {
  for (int64_t chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
    int64_t chosen = 0;
    for (int64_t i = threadIdx.x; i < FindChosen::kChunk; i += kThreads) {
      chosen += is_chosen(p, chunk * FindChosen::kChunk + i) ? 1 : 0;
    }
    chosen = block_sum(chosen);
    if (threadIdx.x == 0) p.chunk_starts[chunk] = chosen;
  }
}

LS_CUDA_KERNEL(masked_add_up, FindChosen, kThreads) {
  int64_t start = 0;
  for (int64_t first = 0; first < p.chunks; first += kThreads) {
    const int64_t chunk = first + threadIdx.x;
    int64_t total = 0;
    const int64_t before = sum_before(chunk < p.chunks ? p.chunk_starts[chunk] : 0, total);
    if (chunk < p.chunks) p.chunk_starts[chunk] = start + before;
    start += total;
  }
  if (threadIdx.x == 0) *p.num_chosen = start;
}

LS_CUDA_KERNEL(masked_find, FindChosen, kThreads) {
  for (int64_t chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
    int64_t start = p.chunk_starts[chunk];
    for (int64_t first = 0; first < FindChosen::kChunk; first += kThreads) {
      const int64_t i = chunk * FindChosen::kChunk + first + threadIdx.x;
      const bool chosen = is_chosen(p, i);
      int64_t total = 0;
      const int64_t before = sum_before(chosen ? 1 : 0, total);
      if (chosen) p.chosen[start + before] = i;
      start += total;
    }
  }
}

LS_CUDA_KERNEL(masked_coordinates, WriteCoordinates, kThreads) {
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t rest = p.chosen[i];
    for (int d = p.rank; d-- > 0;) {
      const int64_t above = p.sizes[d].quotient(rest);
      p.to[i * p.rank + d] = rest - above * p.sizes[d].divisor;
      rest = above;
    }
  }
}

LS_CUDA_KERNEL(masked_read_b1, ReadChosen, kThreads) { read_chosen<uint8_t>(p); }
LS_CUDA_KERNEL(masked_read_b2, ReadChosen, kThreads) { read_chosen<uint16_t>(p); }
LS_CUDA_KERNEL(masked_read_b4, ReadChosen, kThreads) { read_chosen<uint32_t>(p); }
LS_CUDA_KERNEL(masked_read_b8, ReadChosen, kThreads) { read_chosen<uint64_t>(p); }
LS_CUDA_KERNEL(masked_write_b1, WriteChosen, kThreads) { write_chosen<uint8_t>(p); }
LS_CUDA_KERNEL(masked_write_b2, WriteChosen, kThreads) { write_chosen<uint16_t>(p); }
LS_CUDA_KERNEL(masked_write_b4, WriteChosen, kThreads) { write_chosen<uint32_t>(p); }
LS_CUDA_KERNEL(masked_write_b8, WriteChosen, kThreads) { write_chosen<uint64_t>(p); }
LS_CUDA_KERNEL(masked_compare_f32, Compare, kThreads) { compare<float>(p); }
LS_CUDA_KERNEL(masked_compare_f64, Compare, kThreads) { compare<double>(p); }
LS_CUDA_KERNEL(masked_compare_i64, Compare, kThreads) { compare<int64_t>(p); }

}  // namespace lockstep::cuda
