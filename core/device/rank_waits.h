#pragma once

#include <cstdint>

#include "core/tensor/device.h"

namespace lockstep {

/// Counts a moment at which the work of a device is known to wait for other ranks, as a collective
/// does that has begun: what looks after it limits that time, and the device does not hang.
/// Thread-safe.
void note_wait_for_ranks(Device device) noexcept;
/// Number of those moments since the start of the process.
uint64_t waits_for_ranks(Device device) noexcept;

}  // namespace lockstep
