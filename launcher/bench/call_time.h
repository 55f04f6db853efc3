#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "core/tensor/device.h"

namespace lockstep::launcher {

/// Seconds of a call's work on `device`: of many calls that are queued together, so that the time
/// to queue one is hidden where its work takes longer. The best of three rounds of about `seconds`
/// together, after two single calls that warm up.
double call_seconds(Device device, double seconds, FunctionRef<void()> call);

/// Seconds that the calling thread is busy with a call: the median of `rounds` rounds, each of few
/// enough calls that the device's queue never holds them up, and waited for outside of the time.
double queue_seconds(Device device, int rounds, FunctionRef<void()> call);

/// Calls of operators so far that ran on the cpu, as their device has no kernel for them.
int64_t all_cpu_fallbacks();

}  // namespace lockstep::launcher
