#pragma once

#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// Divides element indices by `size`, giving quotient and remainder; fast if all are below 2^31.
struct IndexSplitter {
  int64_t size;
  bool fast;
  Divider divider;

  IndexSplitter() = default;
  /// For indices below `end`.
  IndexSplitter(int64_t piece, int64_t end) : size(piece), fast(false), divider(1) {
    constexpr int64_t kFast = int64_t{1} << 31;
    if (end > kFast || piece >= kFast || piece <= 0) return;
    fast = true;
    divider = Divider(static_cast<uint32_t>(piece));
  }

  /// Returns the quotient of index `i` and stores the remainder in `rest`.
  LS_HOST_DEVICE int64_t split(int64_t i, int64_t& rest) const {
    if (!fast) {
      rest = i % size;
      return i / size;
    }
    const auto small = static_cast<uint32_t>(i);
    const uint32_t piece = divider.quotient(small);
    rest = static_cast<int64_t>(small - piece * divider.divisor);
    return static_cast<int64_t>(piece);
  }
  LS_HOST_DEVICE int64_t quotient(int64_t i) const {
    int64_t rest;
    return split(i, rest);
  }
  LS_HOST_DEVICE int64_t remainder(int64_t i) const {
    int64_t rest;
    split(i, rest);
    return rest;
  }
};

}  // namespace lockstep::cuda
