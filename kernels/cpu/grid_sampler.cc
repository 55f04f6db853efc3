#include <algorithm>
#include <cmath>

#include "core/library.h"
#include "core/parallel.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

enum class Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum class Outside : int64_t { kZeros, kBorder, kReflection };

/// A number and its derivative by the grid's coordinate.
template <class C>
struct Dual {
  C value;
  C slope;
};

/// Mirrors at low2 / 2 and high2 / 2 until the number lies between them.
template <class C>
Dual<C> reflect(Dual<C> x, int64_t low2, int64_t high2) {
  if (low2 == high2) return {0, 0};
  const C low = static_cast<C>(low2) / 2;
  const C span = static_cast<C>(high2 - low2) / 2;
  C distance = x.value - low;
  C slope = x.slope;
  if (distance < 0) {
    distance = -distance;
    slope = -slope;
  }
  const C rest = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), C(2)) == 0;
  return even ? Dual<C>{rest + low, slope} : Dual<C>{span - rest + low, -slope};
}

template <class C>
Dual<C> clip(Dual<C> x, int64_t size) {
  if (!(x.value > 0)) return {0, 0};
  const C last = static_cast<C>(size - 1);
  return x.value >= last ? Dual<C>{last, 0} : x;
}

/// Far outside, where an integer cannot follow, and for NaN: somewhere outside.
template <class C>
Dual<C> representable(Dual<C> x) {
  const bool fits = std::abs(x.value) < C(1 << 30);
  return fits ? x : Dual<C>{-100, x.slope};
}

/// How coordinates of one dimension become places of an image.
template <class C>
struct Coordinates {
  int64_t size;
  Outside outside;
  bool align_corners;

  Dual<C> unnormalized(C x) const {
    const C extent = static_cast<C>(align_corners ? size - 1 : size);
    return {((x + 1) * extent - (align_corners ? 0 : 1)) / 2, extent / 2};
  }
  Dual<C> inside(Dual<C> x) const {
    if (outside == Outside::kZeros) return representable(x);
    if (outside == Outside::kReflection) {
      x = align_corners ? reflect(x, 0, 2 * (size - 1)) : reflect(x, -1, 2 * size - 1);
    }
    return representable(clip(x, size));
  }
};

/// The places that one coordinate reads, with weights and their derivatives. -1: outside.
template <class C>
struct Taps {
  int count = 0;
  int64_t place[4];
  C weight[4];
  C slope[4];

  void add(int64_t at, int64_t size, C w, C s) {
    place[count] = at >= 0 && at < size ? at : -1;
    weight[count] = w;
    slope[count] = s;
    ++count;
  }
};

/// Weights of Keys' cubic convolution, a = -0.75, for a point t behind the second of four.
template <class C>
void cubic_weights(C t, C* weight, C* slope) {
  constexpr C a = C(-0.75);
  for (int i = 0; i < 4; ++i) {
    const C x = std::abs(t - static_cast<C>(i - 1));
    const C sign = t >= static_cast<C>(i - 1) ? C(1) : C(-1);
    if (i == 1 || i == 2) {
      weight[i] = ((a + 2) * x - (a + 3)) * x * x + 1;
      slope[i] = sign * (3 * (a + 2) * x - 2 * (a + 3)) * x;
    } else {
      weight[i] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      slope[i] = sign * ((3 * a * x - 10 * a) * x + 8 * a);
    }
  }
}

template <class C>
Taps<C> taps_of(const Coordinates<C>& coordinates, Interpolation mode, C x) {
  Taps<C> taps;
  const int64_t size = coordinates.size;
  const Dual<C> raw = coordinates.unnormalized(x);
  if (mode == Interpolation::kBicubic) {
    // The neighbours are brought inside, not the point between them.
    const Dual<C> at = representable(raw);
    const C floor = std::floor(at.value);
    C weight[4], slope[4];
    cubic_weights(at.value - floor, weight, slope);
    for (int i = 0; i < 4; ++i) {
      const Dual<C> neighbour = coordinates.inside({floor + static_cast<C>(i - 1), 0});
      taps.add(static_cast<int64_t>(neighbour.value), size, weight[i], slope[i] * at.slope);
    }
    return taps;
  }
  const Dual<C> at = coordinates.inside(raw);
  if (mode == Interpolation::kNearest) {
    taps.add(static_cast<int64_t>(std::nearbyint(at.value)), size, 1, 0);
    return taps;
  }
  const C floor = std::floor(at.value);
  const int64_t low = static_cast<int64_t>(floor);
  taps.add(low, size, floor + 1 - at.value, -at.slope);
  taps.add(low + 1, size, at.value - floor, at.slope);
  return taps;
}

/// One call's geometry; every tensor is contiguous.
template <class T>
struct Sampler {
  using C = ComputeType<T>;
  int64_t channels, height, width, points;
  const T* grid;
  Interpolation mode;
  Coordinates<C> along_x, along_y;

  Sampler(const TensorArg& input, const In& grid_in, int64_t interpolation_mode,
          int64_t padding_mode, bool align_corners)
      : channels(input.size(1)),
        height(input.size(2)),
        width(input.size(3)),
        points(grid_in.size(1) * grid_in.size(2)),
        grid(grid_in.data<T>()),
        mode(static_cast<Interpolation>(interpolation_mode)),
        along_x{width, static_cast<Outside>(padding_mode), align_corners},
        along_y{height, static_cast<Outside>(padding_mode), align_corners} {}

  Taps<C> x_taps(int64_t point) const {
    return taps_of(along_x, mode, static_cast<C>(grid[2 * point]));
  }
  Taps<C> y_taps(int64_t point) const {
    return taps_of(along_y, mode, static_cast<C>(grid[2 * point + 1]));
  }
};

/// Calls visit(pixel, y tap, x tap) for the taps inside the image.
template <class C, class Visit>
void for_each_tap(const Taps<C>& y, const Taps<C>& x, int64_t width, Visit visit) {
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
                     const Taps<C> x = sampler.x_taps(point), y = sampler.y_taps(point);
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

/// Planes are added to in the order of the points, each by one thread.
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
                     const Taps<C> x = sampler.x_taps(grids + point);
                     const Taps<C> y = sampler.y_taps(grids + point);
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
                   const Taps<C> x = sampler.x_taps(point), y = sampler.y_taps(point);
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
