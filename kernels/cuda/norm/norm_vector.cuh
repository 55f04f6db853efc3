#pragma once

#include <cmath>

#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

/// Loads elements of a parameter from `at` on, or `absent` if it is null. kAligned: 16-byte
/// aligned.
template <int kPack, bool kAligned, class T, class C>
__device__ inline void load_parameter(const void* from, int64_t at, C absent, C* to) {
  if (from == nullptr) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = absent;
  } else if constexpr (kAligned) {
    load_pack<kPack>(static_cast<const T*>(from) + at, to);
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = convert<C>(static_cast<const T*>(from)[at + k]);
  }
}

template <class C>
struct NormStatistics {
  C mean;
  C rstd;
};
template <class T>
__device__ inline ComputeType<T> load_statistic(const NormVector& from, int64_t row) {
  using C = ComputeType<T>;
  if (from.data == nullptr) return C(0);
  return from.dtype == dtype_of<T> ? convert<C>(static_cast<const T*>(from.data)[row])
                                   : static_cast<const C*>(from.data)[row];
}
template <class T>
__device__ inline void store_statistic(const NormVector& to, int64_t row, ComputeType<T> value) {
  if (to.data == nullptr) return;
  if (to.dtype == dtype_of<T>) {
    static_cast<T*>(to.data)[row] = convert<T>(value);
  } else {
    static_cast<ComputeType<T>*>(to.data)[row] = value;
  }
}
/// Loads the saved statistics of a row in the backward pass.
template <class T, class Params>
__device__ inline NormStatistics<ComputeType<T>> statistics_at(const Params& p, int64_t row) {
  return {load_statistic<T>(p.mean, row), load_statistic<T>(p.rstd, row)};
}

/// 1 / sqrt(variance + eps), given the sum of squared distances.
template <class C, class Params>
__device__ inline C rstd_of(const Params& p, C squares) {
  return C(1) / std::sqrt(squares / static_cast<C>(p.n) + static_cast<C>(p.eps));
}

/// Replaces values[k] by the norm's result for element at + k.
template <int kPack, bool kAligned, class T, class C, class Params>
__device__ inline void scale_and_shift(const Params& p, int64_t at, const NormStatistics<C>& s,
                                       C* values) {
  C weight[kPack], bias[kPack];
  load_parameter<kPack, kAligned, T>(p.weight, at, C(1), weight);
  load_parameter<kPack, kAligned, T>(p.bias, at, C(0), bias);
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    const C centred = (values[k] - s.mean) * s.rstd;
    values[k] = std::fma(centred, weight[k], bias[k]);
  }
}

/// to[column] = sum over the threads of each column; each thread holds kPack columns.
template <int kPack, class C>
__device__ inline void write_columns(C* to, int64_t first, int64_t n, const C* parts) {
  __shared__ C shared[kNormRowThreads][kWarpThreads * kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) shared[warp_index()][lane_index() * kPack + k] = parts[k];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kWarpThreads * kPack;
       i += kWarpThreads * kNormRowThreads) {
    C total = shared[0][i];
    for (int row = 1; row < kNormRowThreads; ++row) total += shared[row][i];
    if (first + i < n) to[first + i] = total;
  }
  __syncthreads();
}

}  // namespace lockstep::cuda
