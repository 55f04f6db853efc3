#include "kernels/common/p_distance.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/matmul/distance.h"

namespace lockstep::cuda {

namespace {

template <class T>
__device__ T distance(const Distance& p, int64_t row, int64_t column) {
  const T* x = static_cast<const T*>(p.first) + row * p.width;
  const T* y = static_cast<const T*>(p.second) + column * p.width;
  return convert<T>(p_distance(p.width, p.p, [=](int64_t i) {
    return std::fabs(convert<double>(x[i]) - convert<double>(y[i]));
  }));
}

/// One thread per pair of rows of two matrices.
template <class T>
__device__ void distance_pairs(const Distance& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t place, column, first = 0, second = 0;
    int64_t matrix = p.matrix.split(i, place);
    for (int d = p.rank - 1; d >= 0; --d) {
      const int64_t index = matrix % p.sizes[d];
      matrix /= p.sizes[d];
      first += index * p.first_strides[d];
      second += index * p.second_strides[d];
    }
    const int64_t row = p.row.split(place, column);
    static_cast<T*>(p.out)[i] = distance<T>(p, first * p.rows + row, second * p.columns + column);
  }
}

/// One block per row of a matrix: distances to all later rows.
template <class T>
__device__ void distance_later(const Distance& p) {
  const int64_t row = blockIdx.x;
  // The rows before this one have rows - 1, rows - 2, ... pairs.
  T* const to = static_cast<T*>(p.out) + row * (2 * p.rows - row - 1) / 2;
  for (int64_t other = row + 1 + threadIdx.x; other < p.rows; other += blockDim.x) {
    to[other - row - 1] = distance<T>(p, row, other);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::Distance;

#define LS_DISTANCE(T, suffix)                                                                     \
  LS_CUDA_KERNEL(distance_pairs_##suffix, Distance, 256) { lockstep::cuda::distance_pairs<T>(p); } \
  LS_CUDA_KERNEL(distance_later_##suffix, Distance, 256) { lockstep::cuda::distance_later<T>(p); }
LS_DISTANCE(float, f32)
LS_DISTANCE(double, f64)
LS_DISTANCE(Half, f16)
LS_DISTANCE(BFloat16, bf16)
