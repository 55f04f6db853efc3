#pragma once

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

}  // namespace lockstep::cuda
