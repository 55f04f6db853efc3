#pragma once

#include <chrono>

namespace lockstep::dist {

/// Asks the system to schedule the calling thread in slices of `length` instead of the default of
/// some milliseconds. If all cores compute, a thread that wakes for a short time then need not wait
/// for the end of another thread's slice. Its share of the cores stays the same. Requires
/// Linux 6.12 and has no effect elsewhere. Returns whether the system accepted the request.
bool ask_for_short_slices(std::chrono::microseconds length) noexcept;

}  // namespace lockstep::dist
