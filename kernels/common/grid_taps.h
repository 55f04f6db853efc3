#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// How a value between pixels is interpolated.
enum class GridInterpolation : int64_t { kBilinear, kNearest, kBicubic };
/// How coordinates outside the image are treated (padding_mode).
enum class GridOutside : int64_t { kZeros, kBorder, kReflection };

/// A coordinate and its derivative with respect to the grid's value.
template <class C>
struct GridNumber {
  C value;
  C slope;
};

/// Reflects at low2 / 2 and high2 / 2 until the coordinate lies between them.
template <class C>
LS_HOST_DEVICE GridNumber<C> grid_reflect(GridNumber<C> x, int64_t low2, int64_t high2) {
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
  return even ? GridNumber<C>{rest + low, slope} : GridNumber<C>{span - rest + low, -slope};
}

template <class C>
LS_HOST_DEVICE GridNumber<C> grid_clip(GridNumber<C> x, int64_t size) {
  if (!(x.value > 0)) return {0, 0};
  const C last = static_cast<C>(size - 1);
  return x.value >= last ? GridNumber<C>{last, 0} : x;
}

/// Replaces NaN and values too large for an integer index by -100, which is outside every image.
template <class C>
LS_HOST_DEVICE GridNumber<C> grid_representable(GridNumber<C> x) {
  const bool fits = std::abs(x.value) < C(1 << 30);
  return fits ? x : GridNumber<C>{-100, x.slope};
}

/// Converts grid coordinates in [-1, 1] of one dimension to pixel coordinates.
template <class C>
struct GridCoordinates {
  int64_t size;
  GridOutside outside;
  bool align_corners;

  LS_HOST_DEVICE GridNumber<C> unnormalized(C x) const {
    const C extent = static_cast<C>(align_corners ? size - 1 : size);
    return {((x + 1) * extent - (align_corners ? 0 : 1)) / 2, extent / 2};
  }
  LS_HOST_DEVICE GridNumber<C> inside(GridNumber<C> x) const {
    if (outside == GridOutside::kZeros) return grid_representable(x);
    if (outside == GridOutside::kReflection) {
      x = align_corners ? grid_reflect(x, 0, 2 * (size - 1)) : grid_reflect(x, -1, 2 * size - 1);
    }
    return grid_representable(grid_clip(x, size));
  }
};

/// The pixels that one coordinate reads, with their weights and the weights' derivatives. A place
/// of -1 is outside the image.
template <class C>
struct GridTaps {
  int count = 0;
  int64_t place[4];
  C weight[4];
  C slope[4];

  LS_HOST_DEVICE void add(int64_t at, int64_t size, C w, C s) {
    place[count] = at >= 0 && at < size ? at : -1;
    weight[count] = w;
    slope[count] = s;
    ++count;
  }
};

/// Weights of Keys' cubic convolution, a = -0.75, for a point at distance t past the second of
/// four.
template <class C>
LS_HOST_DEVICE void grid_cubic_weights(C t, C* weight, C* slope) {
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
LS_HOST_DEVICE GridTaps<C> grid_taps(const GridCoordinates<C>& coordinates, GridInterpolation mode,
                                     C x) {
  GridTaps<C> taps;
  const int64_t size = coordinates.size;
  const GridNumber<C> raw = coordinates.unnormalized(x);
  if (mode == GridInterpolation::kBicubic) {
    // The padding mode is applied to each neighbour's index, not to the point between them.
    const GridNumber<C> at = grid_representable(raw);
    const C floor = std::floor(at.value);
    C weight[4], slope[4];
    grid_cubic_weights(at.value - floor, weight, slope);
    for (int i = 0; i < 4; ++i) {
      const GridNumber<C> neighbour = coordinates.inside({floor + static_cast<C>(i - 1), 0});
      taps.add(static_cast<int64_t>(neighbour.value), size, weight[i], slope[i] * at.slope);
    }
    return taps;
  }
  const GridNumber<C> at = coordinates.inside(raw);
  if (mode == GridInterpolation::kNearest) {
    taps.add(static_cast<int64_t>(std::nearbyint(at.value)), size, 1, 0);
    return taps;
  }
  const C floor = std::floor(at.value);
  const int64_t low = static_cast<int64_t>(floor);
  taps.add(low, size, floor + 1 - at.value, -at.slope);
  taps.add(low + 1, size, at.value - floor, at.slope);
  return taps;
}

}  // namespace lockstep
