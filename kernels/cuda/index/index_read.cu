#include "kernels/cuda/index/index_list.cuh"
#include "kernels/cuda/index/index_read.h"

namespace lockstep::cuda {

namespace {

template <class Unit>
__device__ void read_indexed(const IndexedRead& p) {
  const auto* const from = static_cast<const Unit*>(p.from);
  auto* const to = static_cast<Unit*>(p.to);
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    const int64_t run = p.inner.quotient(i);
    const int64_t inner = i - run * p.inner.divisor;
    const int64_t row = p.after.quotient(run);
    const int64_t before = p.places.quotient(row);
    const int64_t index = read_index(p.list, row - before * p.places.divisor);
    if (index < 0) continue;
    int64_t after[1];
    p.after_walk.offsets(run - row * p.after.divisor, after);
    to[i] = from[before * p.before_stride + index * p.place_stride + after[0] + inner];
  }
}

template <class Unit>
__device__ void gather(const Gather& p) {
  const auto* const from = static_cast<const Unit*>(p.from);
  auto* const to = static_cast<Unit*>(p.to);
  for (int64_t i = grid_thread(); i < p.list.count; i += grid_threads()) {
    const int64_t index = read_index(p.list, i);
    if (index < 0) continue;
    int64_t at[1];
    p.walk.offsets(i, at);
    to[i] = from[at[0] + index * p.stride];
  }
}

template <class Unit>
__device__ void copy_triangle(const Triangle& p) {
  const auto* const from = static_cast<const Unit*>(p.from);
  auto* const to = static_cast<Unit*>(p.to);
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    const int64_t line = p.columns.quotient(i);
    const int64_t column = i - line * p.columns.divisor;
    const int64_t row = line - p.rows.quotient(line) * p.rows.divisor;
    const bool stays = p.lower ? column - row <= p.diagonal : column - row >= p.diagonal;
    to[i] = stays ? from[i] : Unit();
  }
}

}  // namespace

LS_CUDA_KERNEL(index_read_b1, IndexedRead, 256) { read_indexed<uint8_t>(p); }
LS_CUDA_KERNEL(index_read_b2, IndexedRead, 256) { read_indexed<uint16_t>(p); }
LS_CUDA_KERNEL(index_read_b4, IndexedRead, 256) { read_indexed<uint32_t>(p); }
LS_CUDA_KERNEL(index_read_b8, IndexedRead, 256) { read_indexed<uint64_t>(p); }
LS_CUDA_KERNEL(index_read_b16, IndexedRead, 256) { read_indexed<uint4>(p); }
LS_CUDA_KERNEL(index_gather_b1, Gather, 256) { gather<uint8_t>(p); }
LS_CUDA_KERNEL(index_gather_b2, Gather, 256) { gather<uint16_t>(p); }
LS_CUDA_KERNEL(index_gather_b4, Gather, 256) { gather<uint32_t>(p); }
LS_CUDA_KERNEL(index_gather_b8, Gather, 256) { gather<uint64_t>(p); }
LS_CUDA_KERNEL(index_triangle_b1, Triangle, 256) { copy_triangle<uint8_t>(p); }
LS_CUDA_KERNEL(index_triangle_b2, Triangle, 256) { copy_triangle<uint16_t>(p); }
LS_CUDA_KERNEL(index_triangle_b4, Triangle, 256) { copy_triangle<uint32_t>(p); }
LS_CUDA_KERNEL(index_triangle_b8, Triangle, 256) { copy_triangle<uint64_t>(p); }

}  // namespace lockstep::cuda
