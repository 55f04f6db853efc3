#include "kernels/cuda/conv/im2col.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"

namespace lockstep::cuda {

namespace {

/// One thread per element of the columns.
template <class T>
__device__ void im2col(const Im2col& p) {
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t rest, column, window_row, tap_column;
    const int64_t plane = p.plane.split(i, rest);
    const int64_t tap = p.tap.split(p.row.split(rest, column), window_row);
    const int64_t tap_row = p.tap_row.split(tap, tap_column);
    const int64_t y = window_row * p.stride[0] - p.padding[0] + tap_row * p.dilation[0];
    const int64_t x = column * p.stride[1] - p.padding[1] + tap_column * p.dilation[1];
    const bool inside = y >= 0 && y < p.image[0] && x >= 0 && x < p.image[1];
    static_cast<T*>(p.to)[i] =
        inside ? static_cast<const T*>(p.from)[(plane * p.image[0] + y) * p.image[1] + x] : T(0);
  }
}

/// Window that has `place` as its `tap`-th position along dimension d, or -1.
__device__ int64_t window_of(const Im2col& p, int d, int64_t place, int64_t tap) {
  const int64_t start = place + p.padding[d] - tap * p.dilation[d];
  if (start < 0 || start % p.stride[d] != 0) return -1;
  const int64_t window = start / p.stride[d];
  return window < p.counts[d] ? window : -1;
}

/// One thread per pixel sums the elements that were read from it.
template <class T>
__device__ void col2im(const Im2col& p) {
  using C = ComputeType<T>;
  for (int64_t i = grid_thread(); i < p.numel; i += grid_threads()) {
    int64_t rest, x;
    const int64_t plane = p.plane.split(i, rest), y = p.row.split(rest, x);
    const T* from = static_cast<const T*>(p.from) +
                    plane * p.kernel[0] * p.kernel[1] * p.counts[0] * p.counts[1];
    C sum = 0;
    for (int64_t a = 0; a < p.kernel[0]; ++a) {
      const int64_t row = window_of(p, 0, y, a);
      if (row < 0) continue;
      for (int64_t b = 0; b < p.kernel[1]; ++b) {
        const int64_t column = window_of(p, 1, x, b);
        if (column < 0) continue;
        sum += convert<C>(from[((a * p.kernel[1] + b) * p.counts[0] + row) * p.counts[1] + column]);
      }
    }
    static_cast<T*>(p.to)[i] = convert<T>(sum);
  }
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::BFloat16;
using lockstep::Half;
using lockstep::cuda::Im2col;

#define LS_IM2COL(T, suffix) \
  LS_CUDA_KERNEL(im2col_##suffix, Im2col, 256) { lockstep::cuda::im2col<T>(p); }
LS_IM2COL(uint8_t, b1)
LS_IM2COL(uint16_t, b2)
LS_IM2COL(uint32_t, b4)
LS_IM2COL(uint64_t, b8)
#define LS_COL2IM(T, suffix) \
  LS_CUDA_KERNEL(col2im_##suffix, Im2col, 256) { lockstep::cuda::col2im<T>(p); }
LS_COL2IM(bool, bool)
LS_COL2IM(float, f32)
LS_COL2IM(double, f64)
LS_COL2IM(Half, f16)
LS_COL2IM(BFloat16, bf16)
