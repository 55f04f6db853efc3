#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep {

/// Insertion position of `value` in the sorted elements read(0) to read(n - 1): the number of
/// elements below it or, if `right`, not above it. NaN sorts last.
template <class C, class Read>
LS_HOST_DEVICE int64_t sorted_place(C value, int64_t n, bool right, const Read& read) {
  int64_t first = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const C middle = read(first + half);
    const bool before = right ? !(middle > value) : !(middle >= value);
    first = before ? first + half + 1 : first;
    n = before ? n - half - 1 : half;
  }
  return first;
}

}  // namespace lockstep
