#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// The half-open range of positions [first, last).
struct PlaceRange {
  int64_t first;
  int64_t last;
};

/// Maps positions beyond a line's ends to positions inside it: reflect (without repeating the end)
/// or replicate (the nearest end).
struct PadBorder {
  bool reflects;

  /// The position in [0, size) that `place` is copied from.
  LS_HOST_DEVICE int64_t source(int64_t place, int64_t size) const {
    if (reflects) {
      if (place < 0) return -place;
      return place >= size ? 2 * (size - 1) - place : place;
    }
    if (place < 0) return 0;
    return place >= size ? size - 1 : place;
  }

  /// Inverse of `source`: fills `ranges` with the positions that are copied from `place`, in order,
  /// counted from the start of the padded line, which covers [-before, padded - before). Returns
  /// the number of ranges.
  LS_HOST_DEVICE int targets(int64_t place, int64_t size, int64_t before, int64_t padded,
                             PlaceRange (&ranges)[3]) const {
    int count = 0;
    const auto add = [&](int64_t first, int64_t last) {
      first = first + before > 0 ? first + before : 0;
      last = last + before < padded ? last + before : padded;
      if (first < last) ranges[count++] = {first, last};
    };
    if (reflects) {
      if (place > 0) add(-place, -place + 1);
      add(place, place + 1);
      const int64_t mirrored = 2 * (size - 1) - place;
      if (mirrored > place) add(mirrored, mirrored + 1);
    } else {
      add(place == 0 ? -before : place, place == size - 1 ? padded - before : place + 1);
    }
    return count;
  }
};

}  // namespace lockstep
