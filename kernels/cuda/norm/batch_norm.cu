#include <cmath>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/norm/batch_norm.h"
#include "kernels/cuda/numbers.cuh"

namespace lockstep::cuda {

namespace {

/// The elements that this thread sums. A block processes part blockIdx.y of one channel, or in
/// channels-last layout of kColumns adjacent channels.
struct Part {
  int64_t channel;
  int64_t count;       ///< elements of the whole part
  int64_t begin, end;  ///< the thread's elements, `step` apart
  int64_t step;
  bool is_first;  ///< the thread is the first of its channel

  __device__ explicit Part(const BatchNorm& p) {
    const int64_t first = static_cast<int64_t>(blockIdx.y) * p.part;
    end = first + p.part < p.per_channel ? first + p.part : p.per_channel;
    count = end - first;
    if (!p.channels_last) {
      channel = blockIdx.x;
      begin = first + threadIdx.x;
      step = blockDim.x;
      is_first = threadIdx.x == 0;
      return;
    }
    constexpr unsigned kColumns = BatchNorm::kColumns;
    channel = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x % kColumns;
    step = blockDim.x / kColumns;
    const bool has_channel = channel < p.channels;
    begin = has_channel ? first + threadIdx.x / kColumns : end;
    is_first = has_channel && threadIdx.x < kColumns;
  }
  /// Calls visit(offset) for each of the thread's elements.
  template <class Visit>
  __device__ void for_each(const BatchNorm& p, Visit visit) const {
    for (int64_t i = begin; i < end; i += step) {
      int64_t place;
      const int64_t sample = p.places.split(i, place);
      visit((sample * p.channels + channel) * p.places.size + place);
    }
  }
  /// Sum over the threads of the channel; each of them gets it.
  __device__ static double sum(const BatchNorm& p, double value) {
    if (!p.channels_last) return block_sum(value);
    constexpr unsigned kColumns = BatchNorm::kColumns;
    __shared__ double of_rows[kMostThreads];
    of_rows[threadIdx.x] = value;
    __syncthreads();
    double total = 0;
    for (unsigned i = threadIdx.x % kColumns; i < blockDim.x; i += kColumns) total += of_rows[i];
    __syncthreads();  // the next call overwrites of_rows
    return total;
  }
  __device__ double* sums(const BatchNorm& p) const {
    return p.part_sums + 2 * (channel * p.parts + blockIdx.y);
  }

  static constexpr int kMostThreads = 256;
};

/// Mean of one part of a channel, and sum of squared deviations from it.
template <class T>
__device__ void batch_norm_statistics(const BatchNorm& p) {
  const T* x = static_cast<const T*>(p.input);
  const Part part(p);
  double sum = 0;
  part.for_each(p, [&](int64_t at) { sum += convert<double>(x[at]); });
  const double mean = Part::sum(p, sum) / static_cast<double>(part.count);
  double squares = 0;
  part.for_each(p, [&](int64_t at) {
    const double distance = convert<double>(x[at]) - mean;
    squares += distance * distance;
  });
  squares = Part::sum(p, squares);
  if (!part.is_first) return;
  part.sums(p)[0] = mean;
  part.sums(p)[1] = squares;
}

/// For one part of a channel: sum of the gradient, and sum of the gradient times the deviation from
/// the mean.
template <class T>
__device__ void batch_norm_gradient_sums(const BatchNorm& p) {
  using C = ComputeType<T>;
  const T* x = static_cast<const T*>(p.input);
  const T* g = static_cast<const T*>(p.grad_out);
  const Part part(p);
  double mean = 0;
  if (part.channel < p.channels) {
    mean = static_cast<double>(
        static_cast<C>(number_at(p.train ? p.save_mean : p.old_mean, part.channel, 0)));
  }
  double ones = 0, along = 0;
  part.for_each(p, [&](int64_t at) {
    const auto gradient = convert<double>(g[at]);
    ones += gradient;
    along += gradient * (convert<double>(x[at]) - mean);
  });
  ones = Part::sum(p, ones);
  along = Part::sum(p, along);
  if (!part.is_first) return;
  part.sums(p)[0] = ones;
  part.sums(p)[1] = along;
}

__device__ double reciprocal_root(double variance, double eps) {
  return 1.0 / std::sqrt(variance + eps);
}

/// Sets every element of p.result to element(its index, its channel), a pack at a time if p.packed.
template <class T, class Element>
__device__ void for_each_element(const BatchNorm& p, Element element) {
  using C = ComputeType<T>;
  constexpr int kCount = 16 / sizeof(T);
  using Elements = Pack<T, kCount>;
  const T* x = static_cast<const T*>(p.input);
  const T* g = static_cast<const T*>(p.grad_out);
  T* y = static_cast<T*>(p.result);
  const auto factors_of = [&](int64_t i) {
    const int64_t channel = p.channel_split.remainder(p.places.quotient(i));
    Pack<C, BatchNorm::kFactors> factors;
    for (int k = 0; k < BatchNorm::kFactors; ++k) {
      factors.at[k] = static_cast<C>(p.factors[channel * BatchNorm::kFactors + k]);
    }
    return factors;
  };
  if (p.packed) {
    for (int64_t at = grid_thread(); at < p.numel / kCount; at += grid_threads()) {
      auto factors = factors_of(at * kCount);
      const Elements xs = reinterpret_cast<const Elements*>(x)[at];
      Elements gs{}, ys;
      if (g != nullptr) gs = reinterpret_cast<const Elements*>(g)[at];
      for (int k = 0; k < kCount; ++k) {
        if (p.channels_last && k > 0) factors = factors_of(at * kCount + k);
        ys.at[k] = convert<T>(element(factors.at, convert<C>(xs.at[k]), convert<C>(gs.at[k])));
      }
      reinterpret_cast<Elements*>(y)[at] = ys;
    }
    return;
  }
  for (int64_t at = grid_thread(); at < p.numel; at += grid_threads()) {
    const C gradient = g == nullptr ? C(0) : convert<C>(g[at]);
    y[at] = convert<T>(element(factors_of(at).at, convert<C>(x[at]), gradient));
  }
}

/// factors: mean, 1 / standard deviation, weight, bias.
template <class T>
__device__ void batch_norm_normalise(const BatchNorm& p) {
  using C = ComputeType<T>;
  for_each_element<T>(p, [](const C* factors, C x, C) {
    return std::fma((x - factors[0]) * factors[1], factors[2], factors[3]);
  });
}

/// factors: mean, weight / standard deviation, mean of the gradient, coefficient of the deviation.
template <class T>
__device__ void batch_norm_gradient(const BatchNorm& p) {
  using C = ComputeType<T>;
  for_each_element<T>(p, [](const C* factors, C x, C g) {
    return factors[1] * ((g - factors[2]) - (x - factors[0]) * factors[3]);
  });
}

/// Gradients of one channel. With weight w and normalised elements xhat, the input's gradient is w
/// rstd (g - mean(g) - xhat mean(g xhat)) for batch statistics and w rstd g for fixed ones.
template <class C>
__device__ void finish_gradient(const BatchNorm& p, int64_t channel) {
  double of_bias = 0, along = 0;
  for (int64_t part = 0; part < p.parts; ++part) {
    of_bias += p.part_sums[2 * (channel * p.parts + part)];
    along += p.part_sums[2 * (channel * p.parts + part) + 1];
  }
  const C mean = static_cast<C>(number_at(p.train ? p.save_mean : p.old_mean, channel, 0));
  const C root = static_cast<C>(p.train ? number_at(p.save_root, channel, 0)
                                        : reciprocal_root(number_at(p.old_var, channel, 0), p.eps));
  const double of_weight = along * static_cast<double>(root);
  const auto count = static_cast<double>(p.per_channel);
  double* factors = p.factors + channel * BatchNorm::kFactors;
  factors[0] = static_cast<double>(mean);
  factors[1] = static_cast<double>(static_cast<C>(number_at(p.weight, channel, 1)) * root);
  factors[2] = p.train ? of_bias / count : 0;
  factors[3] = p.train ? static_cast<double>(static_cast<C>(of_weight / count) * root) : 0;
  store_number(p.grad_weight, channel, of_weight);
  store_number(p.grad_bias, channel, of_bias);
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::BatchNorm;

/// One thread per channel: merges the parts (Chan, Golub & LeVeque 1979) and updates the running
/// statistics.
LS_CUDA_KERNEL(batch_norm_finish, BatchNorm, 256) {
  using namespace lockstep::cuda;
  const int64_t channel = grid_thread();
  if (channel >= p.channels) return;
  double mean = 0, squares = 0, count = 0;
  if (!p.train) mean = number_at(p.old_mean, channel, 0);
  for (int64_t part = 0; p.train && part < p.parts; ++part) {
    const double* sums = p.part_sums + 2 * (channel * p.parts + part);
    const int64_t left = p.per_channel - part * p.part;
    const auto more = static_cast<double>(left < p.part ? left : p.part);
    const double distance = sums[0] - mean, all = count + more;
    mean += distance * (more / all);
    squares += sums[1] + distance * distance * (count * more / all);
    count = all;
  }
  const double variance =
      p.train ? (count > 0 ? squares / count : 0.0) : number_at(p.old_var, channel, 0);
  const double root = reciprocal_root(variance, p.eps);
  double* factors = p.factors + channel * BatchNorm::kFactors;
  factors[0] = mean;
  factors[1] = root;
  factors[2] = number_at(p.weight, channel, 1);
  factors[3] = number_at(p.bias, channel, 0);
  if (!p.train) return;
  store_number(p.save_mean, channel, mean);
  store_number(p.save_root, channel, root);
  double moved_mean = number_at(p.old_mean, channel, 0);
  double moved_var = number_at(p.old_var, channel, 0);
  if (count > 0) {
    moved_mean = (1 - p.momentum) * moved_mean + p.momentum * mean;
    moved_var = (1 - p.momentum) * moved_var + p.momentum * (variance * count / (count - 1));
  }
  store_number(p.new_mean, channel, moved_mean);
  store_number(p.new_var, channel, moved_var);
}

#define LS_BATCH_NORM(T, suffix)                                                       \
  LS_CUDA_KERNEL(batch_norm_statistics_##suffix, BatchNorm, 256) {                     \
    lockstep::cuda::batch_norm_statistics<T>(p);                                       \
  }                                                                                    \
  LS_CUDA_KERNEL(batch_norm_gradient_sums_##suffix, BatchNorm, 256) {                  \
    lockstep::cuda::batch_norm_gradient_sums<T>(p);                                    \
  }                                                                                    \
  LS_CUDA_KERNEL(batch_norm_finish_gradient_##suffix, BatchNorm, 256) {                \
    using namespace lockstep::cuda;                                                    \
    if (grid_thread() < p.channels) finish_gradient<ComputeType<T>>(p, grid_thread()); \
  }                                                                                    \
  LS_CUDA_KERNEL(batch_norm_normalise_##suffix, BatchNorm, 256) {                      \
    lockstep::cuda::batch_norm_normalise<T>(p);                                        \
  }                                                                                    \
  LS_CUDA_KERNEL(batch_norm_gradient_##suffix, BatchNorm, 256) {                       \
    lockstep::cuda::batch_norm_gradient<T>(p);                                         \
  }
LS_BATCH_NORM(float, f32)
LS_BATCH_NORM(double, f64)
LS_BATCH_NORM(Half, f16)
LS_BATCH_NORM(BFloat16, bf16)
