#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// The part of one window along one dimension that lies inside the input.
struct PoolSpan {
  int64_t first;
  int64_t last;     ///< one past the end
  int64_t counted;  ///< number of positions a mean divides by
};

/// All windows along one dimension: with a fixed size and stride, or, if
/// `adaptive`, such that they divide the input evenly.
struct PoolAxis {
  int64_t size = 1;
  int64_t windows = 1;
  int64_t dilation = 1;  ///< distance between the positions of one window
  int64_t kernel = 1, stride = 1, padding = 0;
  bool adaptive = true;
  bool counts_padding = false;

  LS_HOST_DEVICE PoolSpan window(int64_t o) const {
    if (adaptive) {
      const int64_t first = o * size / windows;
      const int64_t last = ((o + 1) * size + windows - 1) / windows;
      return {first, last, last - first};
    }
    const int64_t start = o * stride - padding;
    const int64_t end = start + dilation * (kernel - 1) + 1;
    const int64_t before = start < 0 ? (-start + dilation - 1) / dilation * dilation : 0;
    const int64_t first = start + before, inside = end < size ? end : size;
    const int64_t last = inside > first ? inside : first;
    const int64_t padded = (end < size + padding ? end : size + padding) - start;
    return {first, last, counts_padding ? padded : last - first};
  }

  /// Half-open range of windows that may contain `place`; windows outside it do not.
  LS_HOST_DEVICE void windows_near(int64_t place, int64_t& first, int64_t& last) const {
    if (adaptive) {
      first = place * windows / size;
      last = ((place + 1) * windows - 1) / size + 1;
    } else {
      const int64_t reach = place + padding - dilation * (kernel - 1);
      first = reach <= 0 ? 0 : (reach + stride - 1) / stride;
      last = (place + padding) / stride + 1;
    }
    if (last > windows) last = windows;
  }
  LS_HOST_DEVICE bool has(const PoolSpan& span, int64_t place) const {
    return place >= span.first && place < span.last && (place - span.first) % dilation == 0;
  }
};

}  // namespace lockstep
