#include "kernels/common/sorted_place.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/sort/search.h"

namespace lockstep::cuda {

namespace {

/// One thread per value; numbers are compared as C.
template <class C>
__device__ void search_sorted(const Search& p) {
  const auto bytes = element_size(p.dtype);
  const auto number = [&](const void* from, int64_t i) {
    return load_as<C>(p.dtype, static_cast<const char*>(from) + i * bytes);
  };
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    const int64_t start = p.line.quotient(i) * p.n;
    const int64_t place = sorted_place(number(p.values, i), p.n, p.right, [&](int64_t k) {
      int64_t at = p.sorter == nullptr ? k : p.sorter[start + k];
      if (at < 0 || at >= p.n) {
        note_fault(p.fault, at, 0, p.n);
        at = k;
      }
      return number(p.sequence, start + at);
    });
    if (p.out_int32) {
      static_cast<int32_t*>(p.out)[i] = static_cast<int32_t>(place);
    } else {
      static_cast<int64_t*>(p.out)[i] = place;
    }
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::cuda::Search;

LS_CUDA_KERNEL(search_sorted_f64, Search, 256) { lockstep::cuda::search_sorted<double>(p); }
LS_CUDA_KERNEL(search_sorted_i64, Search, 256) { lockstep::cuda::search_sorted<int64_t>(p); }
