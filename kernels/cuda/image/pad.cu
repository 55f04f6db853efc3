#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/image/pad.h"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

__device__ int64_t place_of(const Pad& p, int64_t i, int64_t (&at)[3]) {
  int64_t place, rest;
  const int64_t plane = p.plane.split(i, place);
  at[0] = p.slice.split(place, rest);
  at[1] = p.line.split(rest, at[2]);
  return plane;
}

template <class T>
__device__ void pad(const Pad& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t at[3], offset = 0;
    const int64_t plane = place_of(p, i, at);
    for (int d = 0; d < 3; ++d) {
      offset = offset * p.size[d] + p.border.source(at[d] - p.before[d], p.size[d]);
    }
    static_cast<T*>(p.to)[i] = static_cast<const T*>(p.from)[plane * p.from_plane + offset];
  }
}

/// One thread per element of the unpadded planes sums the padded positions copied from it.
template <class T>
__device__ void pad_backward(const Pad& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t at[3];
    const T* from = static_cast<const T*>(p.from) + place_of(p, i, at) * p.from_plane;
    PlaceRange ranges[3][3];
    int count[3];
    for (int d = 0; d < 3; ++d) {
      count[d] = p.border.targets(at[d], p.size[d], p.before[d], p.padded[d], ranges[d]);
    }
    // Calls visit(place) for the positions along dimension d that are copied from this thread's.
    const auto for_each = [&](int d, auto visit) {
      for (int k = 0; k < count[d]; ++k) {
        for (int64_t place = ranges[d][k].first; place < ranges[d][k].last; ++place) visit(place);
      }
    };
    C sum = 0;
    for_each(0, [&](int64_t a) {
      for_each(1, [&](int64_t b) {
        const T* row = from + (a * p.padded[1] + b) * p.padded[2];
        for_each(2, [&](int64_t c) { sum += convert<C>(row[c]); });
      });
    });
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;

#define LS_PAD(T, suffix) \
  LS_CUDA_KERNEL(pad_##suffix, lockstep::cuda::Pad, 256) { lockstep::cuda::pad<T>(p); }
LS_PAD(uint8_t, b1)
LS_PAD(uint16_t, b2)
LS_PAD(uint32_t, b4)
LS_PAD(uint64_t, b8)
#define LS_PAD_BACKWARD(T, suffix)                                  \
  LS_CUDA_KERNEL(pad_backward_##suffix, lockstep::cuda::Pad, 256) { \
    lockstep::cuda::pad_backward<T>(p);                             \
  }
LS_PAD_BACKWARD(float, f32)
LS_PAD_BACKWARD(double, f64)
LS_PAD_BACKWARD(Half, f16)
LS_PAD_BACKWARD(BFloat16, bf16)
