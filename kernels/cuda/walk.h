#pragma once

#include <cstdint>

#include "core/base/host_device.h"
#include "kernels/cuda/divider.h"

namespace lockstep::cuda {

/// Division of numbers from 0 to a known maximum, which may exceed 31 bits.
struct AnyDivider {
  int64_t divisor;
  Divider fast;
  bool is_fast;

  AnyDivider() = default;
  /// `d` must be at least 1; `largest` is the largest dividend.
  AnyDivider(int64_t d, int64_t largest)
      : divisor(d),
        fast(d < (int64_t{1} << 31) ? static_cast<uint32_t>(d) : 1U),
        is_fast(d < (int64_t{1} << 31) && largest < (int64_t{1} << 31)) {}

  LS_HOST_DEVICE int64_t quotient(int64_t n) const {
    return is_fast ? static_cast<int64_t>(fast.quotient(static_cast<uint32_t>(n))) : n / divisor;
  }
};

/// A row-major walk over a box of elements, with their offsets in kOperands tensors.
template <int kOperands>
struct Walk {
  static constexpr int kMaxRank = 16;

  int32_t rank;
  AnyDivider sizes[kMaxRank];            ///< [0] is the innermost
  int64_t strides[kOperands][kMaxRank];  ///< in elements

  LS_HOST_DEVICE void offsets(int64_t index, int64_t (&at)[kOperands]) const {
    for (int o = 0; o < kOperands; ++o) at[o] = 0;
    for (int d = 0; d < rank; ++d) {
      const int64_t rest = d + 1 == rank ? 0 : sizes[d].quotient(index);
      const int64_t place = index - rest * sizes[d].divisor;
      for (int o = 0; o < kOperands; ++o) at[o] += place * strides[o][d];
      index = rest;
    }
  }
};

}  // namespace lockstep::cuda
