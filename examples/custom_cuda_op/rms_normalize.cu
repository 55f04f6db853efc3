// Every sum has a fixed order, so the same input gives the same bits.

#include <cmath>

#include "core/cuda/kernel.cuh"
#include "rms_normalize.h"

using rms_normalize::kThreads;
using rms_normalize::Scaling;
using rms_normalize::SquareSums;

namespace {

__device__ int64_t first_element() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ int64_t all_threads() { return int64_t{gridDim.x} * blockDim.x; }

}  // namespace

LS_CUDA_KERNEL(my_rms_square_sums, SquareSums, kThreads) {
  __shared__ float sums[kThreads];
  float sum = 0;
  for (int64_t i = first_element(); i < p.count; i += all_threads()) {
    sum = std::fma(p.in[i], p.in[i], sum);
  }
  sums[threadIdx.x] = sum;
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
  }
  if (threadIdx.x == 0) p.sums[blockIdx.x] = sums[0];
}

LS_CUDA_KERNEL(my_rms_scale, Scaling, kThreads) {
  float sum = 0;
  for (int64_t i = 0; i < p.sum_count; ++i) sum += p.sums[i];
  const float factor = 1.0f / std::sqrt(sum / static_cast<float>(p.count) + p.eps);
  for (int64_t i = first_element(); i < p.count; i += all_threads()) p.out[i] = p.in[i] * factor;
}
