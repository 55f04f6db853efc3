#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace lockstep::cuda {

/// Division of numbers below 2^31 by a fixed divisor, as a multiplication and a shift. (Granlund &
/// Montgomery 1994, "Division by invariant integers using multiplication".)
struct Divider {
  uint32_t divisor;
  uint32_t factor;
  uint32_t shift;

  Divider() = default;
  /// `d` must be in [1, 2^31 - 1].
  explicit Divider(uint32_t d) : divisor(d), factor(0), shift(0) {
    while ((uint64_t{1} << shift) < d) ++shift;
    factor = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1);
  }

  LS_HOST_DEVICE uint32_t quotient(uint32_t n) const {
    const uint32_t high = static_cast<uint32_t>((uint64_t{n} * factor) >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace lockstep::cuda
