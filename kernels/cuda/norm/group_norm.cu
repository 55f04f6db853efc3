#include <cmath>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/norm/group_norm.h"
#include "kernels/cuda/numbers.cuh"

namespace lockstep::cuda {

namespace {

/// One block per group of each sample; sums are f64.
template <class T>
__device__ void group_norm_forward(const GroupNorm& p) {
  using C = ComputeType<T>;
  const int64_t group = blockIdx.x, count = p.width * p.positions;
  const T* x = static_cast<const T*>(p.input) + group * count;
  T* y = static_cast<T*>(p.result) + group * count;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += convert<double>(x[i]);
  const C centre = static_cast<C>(block_sum(sum) / static_cast<double>(count));
  double squares = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const auto distance = static_cast<double>(convert<C>(x[i]) - centre);
    squares += distance * distance;
  }
  const double variance = block_sum(squares) / static_cast<double>(count);
  const C scale = static_cast<C>(1 / std::sqrt(variance + p.eps));
  if (threadIdx.x == 0) {
    store_number(p.mean, group, static_cast<double>(centre));
    store_number(p.root, group, static_cast<double>(scale));
  }
  const int64_t first_channel = group % p.groups * p.width;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const int64_t channel = first_channel + p.place.quotient(i);
    const C factor = scale * static_cast<C>(number_at(p.weight, channel, 1));
    const C offset = static_cast<C>(number_at(p.bias, channel, 0));
    y[i] = convert<T>((convert<C>(x[i]) - centre) * factor + offset);
  }
}

/// One warp per channel of each sample: sums the gradient, and the gradient times xhat.
template <class T>
__device__ void group_norm_sums(const GroupNorm& p) {
  using C = ComputeType<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warp_count() + warp_index();
  if (row >= p.samples * p.channels) return;
  const T* x = static_cast<const T*>(p.input) + row * p.positions;
  const T* g = static_cast<const T*>(p.grad_out) + row * p.positions;
  const C centre = static_cast<C>(number_at(p.mean, row / p.width, 0));
  double gradient = 0, along = 0;
  for (int64_t i = lane_index(); i < p.positions; i += kWarpThreads) {
    const auto each = convert<double>(g[i]);
    gradient += each;
    along += each * static_cast<double>(convert<C>(x[i]) - centre);
  }
  gradient = warp_sum(gradient);
  along = warp_sum(along);
  if (lane_index() != 0) return;
  p.sums[2 * row] = gradient;
  p.sums[2 * row + 1] = along * number_at(p.root, row / p.width, 0);
}

/// One block per group of each sample: computes rstd (gw - mean(gw) - xhat mean(gw xhat)) with gw =
/// grad_out * weight.
template <class T>
__device__ void group_norm_gradient(const GroupNorm& p) {
  using C = ComputeType<T>;
  const int64_t group = blockIdx.x, count = p.width * p.positions;
  const int64_t first_channel = group % p.groups * p.width;
  double gradient = 0, along = 0;
  for (int64_t c = threadIdx.x; c < p.width; c += blockDim.x) {
    const double weight = number_at(p.weight, first_channel + c, 1);
    gradient += p.sums[2 * (group * p.width + c)] * weight;
    along += p.sums[2 * (group * p.width + c) + 1] * weight;
  }
  gradient = block_sum(gradient);
  along = block_sum(along);
  const double scale = number_at(p.root, group, 0);
  const C centre = static_cast<C>(number_at(p.mean, group, 0));
  const C level = static_cast<C>(scale * gradient / static_cast<double>(count));
  const C slope = static_cast<C>(scale * scale * along / static_cast<double>(count));
  const T* x = static_cast<const T*>(p.input) + group * count;
  const T* g = static_cast<const T*>(p.grad_out) + group * count;
  T* to = static_cast<T*>(p.result) + group * count;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const int64_t channel = first_channel + p.place.quotient(i);
    const C factor = static_cast<C>(scale * number_at(p.weight, channel, 1));
    to[i] = convert<T>(factor * convert<C>(g[i]) - level - (convert<C>(x[i]) - centre) * slope);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::GroupNorm;

/// One thread per channel sums over the samples.
LS_CUDA_KERNEL(group_norm_parameters, GroupNorm, 256) {
  using namespace lockstep::cuda;
  const int64_t channel = grid_thread();
  if (channel >= p.channels) return;
  double gradient = 0, along = 0;
  for (int64_t sample = 0; sample < p.samples; ++sample) {
    gradient += p.sums[2 * (sample * p.channels + channel)];
    along += p.sums[2 * (sample * p.channels + channel) + 1];
  }
  store_number(p.grad_weight, channel, along);
  store_number(p.grad_bias, channel, gradient);
}

#define LS_GROUP_NORM(T, suffix)                                 \
  LS_CUDA_KERNEL(group_norm_forward_##suffix, GroupNorm, 256) {  \
    lockstep::cuda::group_norm_forward<T>(p);                    \
  }                                                              \
  LS_CUDA_KERNEL(group_norm_sums_##suffix, GroupNorm, 256) {     \
    lockstep::cuda::group_norm_sums<T>(p);                       \
  }                                                              \
  LS_CUDA_KERNEL(group_norm_gradient_##suffix, GroupNorm, 256) { \
    lockstep::cuda::group_norm_gradient<T>(p);                   \
  }
LS_GROUP_NORM(float, f32)
LS_GROUP_NORM(double, f64)
LS_GROUP_NORM(Half, f16)
LS_GROUP_NORM(BFloat16, bf16)
