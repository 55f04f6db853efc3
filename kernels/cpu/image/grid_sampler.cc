#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/grid_taps.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

/// Geometry of one call; every tensor is contiguous.
template <class T>
struct Sampler {
  using C = ComputeType<T>;
  int64_t channels, height, width, points;
  const T* grid;
  GridInterpolation mode;
  GridCoordinates<C> along_x, along_y;

  Sampler(const TensorArg& input, const In& grid_in, int64_t interpolation_mode,
          int64_t padding_mode, bool align_corners)
      : channels(input.size(1)),
        height(input.size(2)),
        width(input.size(3)),
        points(grid_in.size(1) * grid_in.size(2)),
        grid(grid_in.data<T>()),
        mode(static_cast<GridInterpolation>(interpolation_mode)),
        along_x{width, static_cast<GridOutside>(padding_mode), align_corners},
        along_y{height, static_cast<GridOutside>(padding_mode), align_corners} {}

  GridTaps<C> x_taps(int64_t point) const {
    return grid_taps(along_x, mode, static_cast<C>(grid[2 * point]));
  }
  GridTaps<C> y_taps(int64_t point) const {
    return grid_taps(along_y, mode, static_cast<C>(grid[2 * point + 1]));
  }
};

/// Calls visit(pixel, y tap, x tap) for the taps inside the image.
template <class C, class Visit>
void for_each_tap(const GridTaps<C>& y, const GridTaps<C>& x, int64_t width, Visit visit) {
  for (int i = 0; i < y.count; ++i) {
    for (int j = 0; j < x.count; ++j) {
      if (y.place[i] >= 0 && x.place[j] >= 0) visit(y.place[i] * width + x.place[j], i, j);
    }
  }
}

void grid_sampler_2d(const Out& out, const In& input, const In& grid, int64_t interpolation_mode,
                     int64_t padding_mode, bool align_corners) {
  if (out.numel == 0) return;
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const Sampler<T> sampler(input, grid, interpolation_mode, padding_mode, align_corners);
    const int64_t plane = sampler.height * sampler.width;
    parallel_for(0, input.size(0) * sampler.points, std::max<int64_t>(1, 2048 / sampler.channels),
                 [&](int64_t first, int64_t last) {
                   for (int64_t point = first; point < last; ++point) {
                     const int64_t image = point / sampler.points * sampler.channels;
                     const int64_t at = point % sampler.points;
                     const GridTaps<C> x = sampler.x_taps(point), y = sampler.y_taps(point);
                     for (int64_t c = 0; c < sampler.channels; ++c) {
                       const T* from = input.data<T>() + (image + c) * plane;
                       C sum = 0;
                       for_each_tap(y, x, sampler.width, [&](int64_t pixel, int i, int j) {
                         sum += y.weight[i] * x.weight[j] * static_cast<C>(from[pixel]);
                       });
                       out.data<T>()[(image + c) * sampler.points + at] = T(sum);
                     }
                   }
                 });
  });
}

/// Each plane is accumulated by one thread in the order of the points.
template <class T>
void input_gradient(const Out& out, const In& grad, const Sampler<T>& sampler) {
  using C = ComputeType<T>;
  const int64_t plane = sampler.height * sampler.width;
  parallel_for(0, out.numel / plane,
               std::max<int64_t>(1, 2048 / std::max<int64_t>(sampler.points, 1)),
               [&](int64_t first, int64_t last) {
                 std::vector<C> sums(static_cast<size_t>(plane));
                 for (int64_t p = first; p < last; ++p) {
                   std::fill(sums.begin(), sums.end(), C(0));
                   const int64_t grids = p / sampler.channels * sampler.points;
                   for (int64_t point = 0; point < sampler.points; ++point) {
                     const GridTaps<C> x = sampler.x_taps(grids + point);
                     const GridTaps<C> y = sampler.y_taps(grids + point);
                     const C g = static_cast<C>(grad.data<T>()[p * sampler.points + point]);
                     for_each_tap(y, x, sampler.width, [&](int64_t pixel, int i, int j) {
                       sums[static_cast<size_t>(pixel)] += y.weight[i] * x.weight[j] * g;
                     });
                   }
                   for (int64_t i = 0; i < plane; ++i) {
                     out.data<T>()[p * plane + i] = T(sums[static_cast<size_t>(i)]);
                   }
                 }
               });
}

template <class T>
void grid_gradient(const Out& out, const In& grad, const In& input, const Sampler<T>& sampler) {
  using C = ComputeType<T>;
  const int64_t plane = sampler.height * sampler.width;
  parallel_for(0, out.numel / 2,
               std::max<int64_t>(1, 2048 / std::max<int64_t>(sampler.channels, 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t point = first; point < last; ++point) {
                   const int64_t image = point / sampler.points * sampler.channels;
                   const int64_t at = point % sampler.points;
                   const GridTaps<C> x = sampler.x_taps(point), y = sampler.y_taps(point);
                   C along_x = 0, along_y = 0;
                   for (int64_t c = 0; c < sampler.channels; ++c) {
                     const T* from = input.data<T>() + (image + c) * plane;
                     const C g = static_cast<C>(grad.data<T>()[(image + c) * sampler.points + at]);
                     for_each_tap(y, x, sampler.width, [&](int64_t pixel, int i, int j) {
                       const C value = g * static_cast<C>(from[pixel]);
                       along_x += y.weight[i] * x.slope[j] * value;
                       along_y += y.slope[i] * x.weight[j] * value;
                     });
                   }
                   out.data<T>()[2 * point] = T(along_x);
                   out.data<T>()[2 * point + 1] = T(along_y);
                 }
               });
}

void grid_sampler_2d_backward(const Out& grad_input, const Out& grad_grid, const In& grad,
                              const In& input, const In& grid, int64_t interpolation_mode,
                              int64_t padding_mode, bool align_corners, BoolList) {
  with_floating_type(input.dtype, [&]<class T>() {
    const Sampler<T> sampler(input, grid, interpolation_mode, padding_mode, align_corners);
    if (grad_input.defined() && grad_input.numel > 0) input_gradient<T>(grad_input, grad, sampler);
    if (grad_grid.defined() && grad_grid.numel > 0) {
      grid_gradient<T>(grad_grid, grad, input, sampler);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "grid_sampler_2d", grid_sampler_2d, Strides::kContiguous);
LS_KERNEL(CPU, "grid_sampler_2d_backward", grid_sampler_2d_backward, Strides::kContiguous);

}  // namespace lockstep::cpu
