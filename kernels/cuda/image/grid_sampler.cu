#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/image/grid_sampler.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// The pixels that one point reads, and their weights.
template <class T>
struct Taps {
  using C = ComputeType<T>;
  GridTaps<C> x, y;

  __device__ Taps(const GridSampler& p, int64_t point) {
    const T* at = static_cast<const T*>(p.grid) + 2 * point;
    x = grid_taps<C>({p.width, p.outside, p.align_corners}, p.mode, convert<C>(at[0]));
    y = grid_taps<C>({p.height, p.outside, p.align_corners}, p.mode, convert<C>(at[1]));
  }
  /// Calls visit(pixel, y tap, x tap) for the taps inside the image.
  template <class Visit>
  __device__ void for_each(int64_t width, Visit visit) const {
    for (int i = 0; i < y.count; ++i) {
      for (int j = 0; j < x.count; ++j) {
        if (y.place[i] >= 0 && x.place[j] >= 0) visit(y.place[i] * width + x.place[j], i, j);
      }
    }
  }
};

/// One thread per point of each image.
template <class T>
__device__ void sample(const GridSampler& p) {
  using C = ComputeType<T>;
  const int64_t plane = p.height * p.width;
  for (int64_t point = grid_thread(); point < p.images * p.points; point += grid_threads()) {
    int64_t at;
    const int64_t first = p.point.split(point, at) * p.channels;
    const Taps<T> taps(p, point);
    for (int64_t c = first; c < first + p.channels; ++c) {
      const T* from = static_cast<const T*>(p.input) + c * plane;
      C sum = 0;
      taps.for_each(p.width, [&](int64_t pixel, int i, int j) {
        sum += taps.y.weight[i] * taps.x.weight[j] * convert<C>(from[pixel]);
      });
      static_cast<T*>(p.result)[c * p.points + at] = convert<T>(sum);
    }
  }
}

template <class T>
__device__ void grid_gradient(const GridSampler& p) {
  using C = ComputeType<T>;
  const int64_t plane = p.height * p.width;
  for (int64_t point = grid_thread(); point < p.images * p.points; point += grid_threads()) {
    int64_t at;
    const int64_t first = p.point.split(point, at) * p.channels;
    const Taps<T> taps(p, point);
    C along_x = 0, along_y = 0;
    for (int64_t c = first; c < first + p.channels; ++c) {
      const T* from = static_cast<const T*>(p.input) + c * plane;
      const C gradient = convert<C>(static_cast<const T*>(p.grad_out)[c * p.points + at]);
      taps.for_each(p.width, [&](int64_t pixel, int i, int j) {
        const C value = gradient * convert<C>(from[pixel]);
        along_x += taps.y.weight[i] * taps.x.slope[j] * value;
        along_y += taps.y.slope[i] * taps.x.weight[j] * value;
      });
    }
    static_cast<T*>(p.result)[2 * point] = convert<T>(along_x);
    static_cast<T*>(p.result)[2 * point + 1] = convert<T>(along_y);
  }
}

/// Records what each point reads, in order.
template <class T>
__device__ void find_reads(const GridSampler& p) {
  using C = ComputeType<T>;
  const int64_t plane = p.height * p.width;
  for (int64_t point = grid_thread(); point < p.images * p.points; point += grid_threads()) {
    const int64_t image = p.point.quotient(point);
    const Taps<T> taps(p, point);
    uint32_t* const pixels = p.pixels + point * p.reads;
    for (int64_t i = 0; i < p.reads; ++i) pixels[i] = IndexList::kNoPlace;
    taps.for_each(p.width, [&](int64_t pixel, int i, int j) {
      const int64_t read = i * p.taps + j;
      pixels[read] = static_cast<uint32_t>(image * plane + pixel);
      static_cast<C*>(p.weights)[point * p.reads + read] = taps.y.weight[i] * taps.x.weight[j];
    });
  }
}

/// One thread per element of the gradient sums the reads of its pixel, in the order of the points.
template <class T>
__device__ void input_gradient(const GridSampler& p) {
  using C = ComputeType<T>;
  const int64_t plane = p.height * p.width;
  for (int64_t i = grid_thread(); i < p.images * p.channels * plane; i += grid_threads()) {
    int64_t pixel;
    const int64_t channel = p.plane.split(i, pixel), image = channel / p.channels;
    const int64_t* range = p.first_of + image * plane + pixel;
    const T* from = static_cast<const T*>(p.grad_out) + channel * p.points - image * p.points;
    C sum = 0;
    for (int64_t k = range[0]; k < range[1]; ++k) {
      const int64_t read = p.sorted_reads[k];
      sum += static_cast<const C*>(p.weights)[read] * convert<C>(from[p.read.quotient(read)]);
    }
    static_cast<T*>(p.result)[i] = convert<T>(sum);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::GridSampler;

/// One thread per pixel, and one more for the end, finds the pixel's first read.
LS_CUDA_KERNEL(grid_sampler_firsts, GridSampler, 256) {
  using namespace lockstep::cuda;
  const int64_t pixels = p.images * p.height * p.width;
  for (int64_t pixel = grid_thread(); pixel <= pixels; pixel += grid_threads()) {
    int64_t low = 0, high = p.images * p.points * p.reads;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (static_cast<int64_t>(p.sorted_pixels[middle]) >= pixel) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    p.first_of[pixel] = low;
  }
}

#define LS_GRID_SAMPLER(T, suffix)                                                          \
  LS_CUDA_KERNEL(grid_sampler_##suffix, GridSampler, 256) { lockstep::cuda::sample<T>(p); } \
  LS_CUDA_KERNEL(grid_sampler_grid_##suffix, GridSampler, 256) {                            \
    lockstep::cuda::grid_gradient<T>(p);                                                    \
  }                                                                                         \
  LS_CUDA_KERNEL(grid_sampler_reads_##suffix, GridSampler, 256) {                           \
    lockstep::cuda::find_reads<T>(p);                                                       \
  }                                                                                         \
  LS_CUDA_KERNEL(grid_sampler_input_##suffix, GridSampler, 256) {                           \
    lockstep::cuda::input_gradient<T>(p);                                                   \
  }
LS_GRID_SAMPLER(float, f32)
LS_GRID_SAMPLER(double, f64)
LS_GRID_SAMPLER(Half, f16)
LS_GRID_SAMPLER(BFloat16, bf16)
