#pragma once

#include "kernels/cuda/loss/softmax.h"
#include "kernels/cuda/rows.cuh"

namespace lockstep::cuda {

/// Work assignment of the column kernels: adjacent threads process adjacent columns, and several
/// threads share a column, each taking elements at a fixed stride.
struct SoftmaxColumns {
  int64_t tiles;  ///< tiles per outer index
  __device__ explicit SoftmaxColumns(const SoftmaxLines& p)
      : tiles((p.inner + kSoftmaxColumns - 1) / kSoftmaxColumns) {}
  __device__ int64_t column(int64_t tile) const {
    return tile % tiles * kSoftmaxColumns + threadIdx.x % kSoftmaxColumns;
  }
  __device__ int64_t base(const SoftmaxLines& p, int64_t tile) const {
    return tile / tiles * p.n * p.inner + column(tile);
  }
  __device__ static int part() { return static_cast<int>(threadIdx.x / kSoftmaxColumns); }
};

/// Reduces over the threads of each column.
template <class Op>
__device__ inline typename Op::Element join_column(typename Op::Element value) {
  __shared__ typename Op::Element parts[kSoftmaxColumnThreads][kSoftmaxColumns];
  const unsigned column = threadIdx.x % kSoftmaxColumns;
  parts[SoftmaxColumns::part()][column] = value;
  __syncthreads();
  value = parts[0][column];
  for (int i = 1; i < kSoftmaxColumnThreads; ++i) value = Op::combine(value, parts[i][column]);
  __syncthreads();
  return value;
}

}  // namespace lockstep::cuda
