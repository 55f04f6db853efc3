#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/factory/fill.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

template <class T>
__device__ void write_sequence(const Sequence<T>& p) {
  const int64_t element = element_size(p.dtype);
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    store_as(p.dtype, static_cast<char*>(p.out) + i * element,
             p.first + static_cast<T>(i) * p.step);
  }
}

}  // namespace

LS_CUDA_KERNEL(fill_zeros, ZeroBytes, 256) {
  // 16 bytes at a time between the first and the last 16-byte boundary.
  const int64_t head = static_cast<int64_t>((16 - reinterpret_cast<uintptr_t>(p.at) % 16) % 16);
  const int64_t first = head < p.bytes ? head : p.bytes;
  const int64_t wide = (p.bytes - first) / 16;
  uint4* const to = reinterpret_cast<uint4*>(p.at + first);
  for (int64_t i = grid_thread(); i < wide; i += grid_threads()) to[i] = uint4{};
  const int64_t tail = first + wide * 16;
  if (grid_thread() < first) p.at[grid_thread()] = 0;
  if (tail + grid_thread() < p.bytes) p.at[tail + grid_thread()] = 0;
}

LS_CUDA_KERNEL(fill_sequence_f64, Sequence<double>, 256) { write_sequence(p); }
LS_CUDA_KERNEL(fill_sequence_i64, Sequence<int64_t>, 256) { write_sequence(p); }

}  // namespace lockstep::cuda
