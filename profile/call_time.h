#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/function_ref.h"
#include "core/tensor/device.h"

namespace lockstep::profile {

/// Seconds that the work of a call takes on `device`, measured over many calls queued together, so
/// that queueing is hidden if the work takes longer. The best of three rounds of about `seconds` in
/// total, after two calls that warm up.
double call_seconds(Device device, double seconds, FunctionRef<void()> call);

/// A call and what it takes.
struct TimedCall {
  int64_t size = 0;
  double seconds = 0;
  std::function<void()> call;
};
/// Times the call that `make` returns for the largest of the growing `sizes` that there is memory
/// for, or for the first whose call takes more than `long_call` seconds: a device may be slower
/// than was thought, such as an emulated one. Takes about `seconds` behind the search for the size.
TimedCall time_largest(Device device, double seconds, std::span<const int64_t> sizes,
                       double long_call,
                       const std::function<std::function<void()>(int64_t size)>& make);

/// Seconds that the calling thread spends in a call: the median of `rounds` rounds. Each round has
/// few enough calls that the device's queue never blocks, and is waited for outside the timing.
double queue_seconds(Device device, int rounds, FunctionRef<void()> call);

/// Number of operator calls so far that ran on the cpu because the device has no kernel for them.
int64_t all_cpu_fallbacks();

}  // namespace lockstep::profile
