#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// The pixels that a resampled pixel depends on: the nearest one, or a weighted neighbourhood.
enum class ResampleFilter : int32_t { kNearest, kLinear, kCubic };

/// Resampling of one dimension of an image.
struct ResampleAxis {
  ResampleFilter filter;
  int64_t from;  ///< input size
  int64_t to;    ///< output size
  bool align_corners;
  double scale;  ///< output size per input size; 0 if not given

  /// Input pixels per output pixel.
  LS_HOST_DEVICE double step() const {
    return scale > 0 ? 1 / scale : static_cast<double>(from) / static_cast<double>(to);
  }
};

/// Input positions that one output position reads, in order, and their weights.
struct ResampleTaps {
  int count = 0;
  int64_t place[4];
  double weight[4];

  LS_HOST_DEVICE void add(int64_t at, double w) {
    place[count] = at;
    weight[count++] = w;
  }
};

/// Keys' cubic convolution kernel (1981), a = -0.75, for a distance x < 2.
LS_HOST_DEVICE inline double cubic_weight(double x) {
  constexpr double a = -0.75;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

LS_HOST_DEVICE inline ResampleTaps resample_taps(const ResampleAxis& axis, int64_t place) {
  const int64_t last = axis.from - 1;
  const auto inside = [last](int64_t at) { return at < 0 ? 0 : at < last ? at : last; };
  ResampleTaps taps;
  if (axis.filter == ResampleFilter::kNearest) {
    // In f32, as in ATen: the rounding decides which pixel is nearest.
    const float at = static_cast<float>(place) * static_cast<float>(axis.step());
    taps.add(axis.from == axis.to ? place : inside(static_cast<int64_t>(std::floor(at))), 1);
    return taps;
  }
  if (axis.filter == ResampleFilter::kLinear && axis.from == axis.to) {
    taps.add(place, 1);  // whatever the given scale, as in ATen
    return taps;
  }
  const double index = static_cast<double>(place);
  double at = (index + 0.5) * axis.step() - 0.5;
  if (axis.align_corners) {
    at = axis.to > 1 ? index * static_cast<double>(last) / static_cast<double>(axis.to - 1) : 0.0;
  }
  if (axis.filter == ResampleFilter::kLinear) {
    at = at > 0 ? at : 0;
    const int64_t low = inside(static_cast<int64_t>(at));
    const double behind = at - static_cast<double>(low), share = behind < 1 ? behind : 1;
    taps.add(low, 1 - share);
    taps.add(inside(low + 1), share);
    return taps;
  }
  const double floor = std::floor(at), share = at - floor;
  for (int i = -1; i <= 2; ++i) {
    taps.add(inside(static_cast<int64_t>(floor) + i), cubic_weight(std::abs(share - i)));
  }
  return taps;
}

}  // namespace lockstep
