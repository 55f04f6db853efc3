#pragma once

#include <bit>
#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

// Elements of every dtype are sorted by unsigned 64-bit keys.

/// An element of a line and its original index.
struct SortEntry {
  uint64_t key;
  int64_t index;
};

inline constexpr uint64_t kNanKey = ~uint64_t{0};  ///< sorts after every number

LS_HOST_DEVICE inline uint64_t sort_key(int64_t number) {
  return static_cast<uint64_t>(number) ^ uint64_t { 1 } << 63;
}
/// -0 and 0 share a key, and so do all NaN.
LS_HOST_DEVICE inline uint64_t sort_key(double number) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const double value = number + 0.0;  // turns -0 into 0
  if (value != value) return kNanKey;
  const auto bits = std::bit_cast<uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// View of a contiguous tensor as [outer, n, inner] around the sorted dimension: outer * inner
/// lines of n elements.
struct SortLines {
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;

  LS_HOST_DEVICE int64_t count() const { return outer * inner; }
  /// Offset of the first element of `line` in a tensor whose lines have `length` elements.
  LS_HOST_DEVICE int64_t start(int64_t line, int64_t length) const {
    return line / inner * length * inner + line % inner;
  }
};

}  // namespace lockstep
