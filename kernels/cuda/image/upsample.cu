#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/image/upsample.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// Range of output rows that may read `place`: from the first row whose last tap reaches it to the
/// last whose first tap does not exceed it. Tap positions increase from row to row.
__device__ PlaceRange readers_of(const ResampleTaps* taps, int64_t count, int64_t place) {
  const auto first_row = [=](auto reached) {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (reached(taps[middle])) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  return {first_row([=](const ResampleTaps& t) { return t.place[t.count - 1] >= place; }),
          first_row([=](const ResampleTaps& t) { return t.place[0] > place; })};
}

__device__ int64_t place_of(const Upsample& p, int64_t i, int64_t& row, int64_t& column) {
  int64_t place;
  const int64_t plane = p.plane.split(i, place);
  row = p.line.split(place, column);
  return plane;
}

template <class T>
__device__ void upsample_nearest(const Upsample& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t row, column;
    const int64_t plane = place_of(p, i, row, column);
    static_cast<T*>(p.to)[i] = static_cast<const T*>(
        p.from)[(plane * p.axes[0].from + p.taps[0][row].place[0]) * p.axes[1].from +
                p.taps[1][column].place[0]];
  }
}

template <class T>
__device__ void upsample(const Upsample& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t row, column;
    const int64_t plane = place_of(p, i, row, column);
    const ResampleTaps &down = p.taps[0][row], &across = p.taps[1][column];
    const T* from = static_cast<const T*>(p.from) + plane * p.axes[0].from * p.axes[1].from;
    C sum = 0;
    for (int a = 0; a < down.count; ++a) {
      for (int b = 0; b < across.count; ++b) {
        sum += static_cast<C>(down.weight[a] * across.weight[b]) *
               convert<C>(from[down.place[a] * p.axes[1].from + across.place[b]]);
      }
    }
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

/// One thread per pixel of the input's gradient sums over the output pixels that read it.
template <class T>
__device__ void upsample_backward(const Upsample& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t row, column;
    const int64_t plane = place_of(p, i, row, column);
    const PlaceRange rows = p.readers[0][row], columns = p.readers[1][column];
    const T* from = static_cast<const T*>(p.from) + plane * p.axes[0].to * p.axes[1].to;
    C sum = 0;
    for (int64_t y = rows.first; y < rows.last; ++y) {
      const ResampleTaps& down = p.taps[0][y];
      for (int64_t x = columns.first; x < columns.last; ++x) {
        const ResampleTaps& across = p.taps[1][x];
        const C gradient = convert<C>(from[y * p.axes[1].to + x]);
        for (int a = 0; a < down.count; ++a) {
          if (down.place[a] != row) continue;
          for (int b = 0; b < across.count; ++b) {
            if (across.place[b] != column) continue;
            sum += static_cast<C>(down.weight[a] * across.weight[b]) * gradient;
          }
        }
      }
    }
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

/// Positions outside the image were clamped to its border: equal neighbours are merged.
__device__ ResampleTaps merged(const ResampleTaps& taps) {
  ResampleTaps result;
  for (int i = 0; i < taps.count; ++i) {
    if (result.count > 0 && result.place[result.count - 1] == taps.place[i]) {
      result.weight[result.count - 1] += taps.weight[i];
    } else {
      result.add(taps.place[i], taps.weight[i]);
    }
  }
  return result;
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::PlaceRange;
using lockstep::ResampleTaps;
using lockstep::cuda::Upsample;

/// One thread per row and per column of the result.
LS_CUDA_KERNEL(upsample_taps, Upsample, 256) {
  const int64_t i = lockstep::cuda::grid_thread();
  const int axis = i < p.axes[0].to ? 0 : 1;
  const int64_t place = axis == 0 ? i : i - p.axes[0].to;
  if (place < p.axes[axis].to) p.taps[axis][place] = resample_taps(p.axes[axis], place);
}
LS_CUDA_KERNEL(upsample_readers, Upsample, 256) {
  const int64_t i = lockstep::cuda::grid_thread();
  const int axis = i < p.axes[0].from ? 0 : 1;
  const int64_t place = axis == 0 ? i : i - p.axes[0].from;
  if (place >= p.axes[axis].from) return;
  p.readers[axis][place] = lockstep::cuda::readers_of(p.taps[axis], p.axes[axis].to, place);
}

/// One block per axis chooses the highest fixed-point precision for which all weights fit into 16
/// bits.
LS_CUDA_KERNEL(upsample_byte_taps, lockstep::cuda::UpsampleByteTaps, 256) {
  using namespace lockstep::cuda;
  const auto& axis = p.axes[blockIdx.x];
  ResampleTaps* const taps = p.taps[blockIdx.x];
  double largest = 0;
  for (int64_t i = threadIdx.x; i < axis.to; i += blockDim.x) {
    taps[i] = merged(resample_taps(axis, i));
    for (int k = 0; k < taps[i].count; ++k) {
      largest = taps[i].weight[k] > largest ? taps[i].weight[k] : largest;
    }
  }
  largest = block_largest(largest);
  int32_t shift = 0;
  while (shift < 22 && std::floor(0.5 + largest * (1 << (shift + 1))) < 1 << 15) ++shift;
  for (int64_t i = threadIdx.x; i < axis.to; i += blockDim.x) {
    for (int k = 0; k < taps[i].count; ++k) {
      taps[i].weight[k] = std::round(taps[i].weight[k] * (1 << shift));
    }
  }
  if (threadIdx.x == 0) p.shifts[blockIdx.x] = shift;
}
LS_CUDA_KERNEL(upsample_bytes, lockstep::cuda::UpsampleBytes, 256) {
  using namespace lockstep::cuda;
  const int32_t shift = *p.shift;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t rest, inner;
    const int64_t outer = p.outer.split(i, rest), place = p.inner.split(rest, inner);
    const ResampleTaps& taps = p.taps[place];
    int32_t sum = 1 << (shift - 1);
    for (int k = 0; k < taps.count; ++k) {
      sum += static_cast<int32_t>(taps.weight[k]) *
             p.from[(outer * p.from_size + taps.place[k]) * p.inner.size + inner];
    }
    sum >>= shift;
    p.to[i] = static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }
}

#define LS_NEAREST(T, suffix)                                \
  LS_CUDA_KERNEL(upsample_nearest_##suffix, Upsample, 256) { \
    lockstep::cuda::upsample_nearest<T>(p);                  \
  }
LS_NEAREST(uint8_t, b1)
LS_NEAREST(uint16_t, b2)
LS_NEAREST(uint32_t, b4)
LS_NEAREST(uint64_t, b8)
#define LS_UPSAMPLE(T, suffix)                                                                 \
  LS_CUDA_KERNEL(upsample_forward_##suffix, Upsample, 256) { lockstep::cuda::upsample<T>(p); } \
  LS_CUDA_KERNEL(upsample_backward_##suffix, Upsample, 256) {                                  \
    lockstep::cuda::upsample_backward<T>(p);                                                   \
  }
LS_UPSAMPLE(float, f32)
LS_UPSAMPLE(double, f64)
LS_UPSAMPLE(Half, f16)
LS_UPSAMPLE(BFloat16, bf16)
