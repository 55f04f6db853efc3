#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "core/tensor/device.h"

namespace lockstep::profile {

/// Seconds that the work of a call takes on `device`, measured over many calls queued together, so
/// that queueing is hidden if the work takes longer. The best of three rounds of about `seconds` in
/// total, after two calls that warm up.
double call_seconds(Device device, double seconds, FunctionRef<void()> call);

/// Seconds that the calling thread spends in a call: the median of `rounds` rounds. Each round has
/// few enough calls that the device's queue never blocks, and is waited for outside the timing.
double queue_seconds(Device device, int rounds, FunctionRef<void()> call);

/// Number of operator calls so far that ran on the cpu because the device has no kernel for them.
int64_t all_cpu_fallbacks();

}  // namespace lockstep::profile
