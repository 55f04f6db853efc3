#pragma once

#include <cmath>

#include "kernels/cuda/norm/norm_vector.cuh"

namespace lockstep::cuda {

// Layer norm and RMS norm of rows that a group of threads holds in registers.

template <class T, class Group>
__device__ inline void write_statistics(const NormRows& p, int64_t row,
                                        const NormStatistics<ComputeType<T>>& s) {
  if (Group::thread() != 0) return;
  store_statistic<T>(p.mean, row, s.mean);
  store_statistic<T>(p.rstd, row, s.rstd);
}

template <class T, class Group, int kPack, int kEach>
__device__ inline void norm_held(const NormRows& p) {
  using C = ComputeType<T>;
  const int n = static_cast<int>(p.n);
  for (int64_t row = Group::first(); row < p.rows; row += Group::step()) {
    HeldRow<T, Group, kPack, kEach> x;
    x.load(static_cast<const T*>(p.x) + row * n, n, C(0));
    NormStatistics<C> s{C(0), C(1)};
    if (p.centre && n > 0) s.mean = x.template combine<SumOf<C>>() / static_cast<C>(n);
    C squares = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const C distance = x.index(i) < n ? x.at[i] - s.mean : C(0);
      squares = std::fma(distance, distance, squares);
    }
    s.rstd = rstd_of(p, Group::template combine<SumOf<C>>(squares));
    write_statistics<T, Group>(p, row, s);
#pragma unroll
    for (int i = 0; i < kEach; i += kPack) {
      if (x.index(i) < n) scale_and_shift<kPack, true, T>(p, x.index(i), s, x.at + i);
    }
    x.store(dtype_of<T>, p.y, row, n);
  }
}

}  // namespace lockstep::cuda
