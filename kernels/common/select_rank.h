#pragma once

#include "kernels/common/sort_keys.h"

namespace lockstep {

/// Partitions the entries so that the one with rank `rank` is in its sorted position, and returns
/// it. Hoare's quickselect with a median-of-three pivot, which ends up between the two parts.
LS_HOST_DEVICE inline const SortEntry* select_rank(SortEntry* e, int64_t count, int64_t rank) {
  const auto swap = [e](int64_t a, int64_t b) {
    const SortEntry kept = e[a];
    e[a] = e[b];
    e[b] = kept;
  };
  const auto put_in_order = [&](int64_t a, int64_t b) {
    if (e[a].key > e[b].key) swap(a, b);
  };
  int64_t low = 0, high = count - 1;
  while (high > low + 1) {
    swap(low + (high - low) / 2, low + 1);
    put_in_order(low + 1, high);
    put_in_order(low, high);
    put_in_order(low + 1, low);  // now low + 1 <= pivot at low <= high: no bounds to check below
    const uint64_t pivot = e[low].key;
    int64_t up = low + 1, down = high;
    while (true) {
      while (e[++up].key < pivot) continue;
      while (e[--down].key > pivot) continue;
      if (down < up) break;
      swap(up, down);
    }
    swap(low, down);
    if (down <= rank) low = up;
    if (down >= rank) high = down - 1;
  }
  if (high == low + 1) put_in_order(low, high);
  return e + rank;
}

}  // namespace lockstep
