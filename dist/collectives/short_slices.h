#pragma once

#include <chrono>

namespace lockstep::dist {

/// Asks the system to give the calling thread its turns in slices of `length`, in place of the
/// milliseconds that threads have by default: where all cores compute, one that wakes for little
/// then waits for no whole slice of another. Its share of the cores stays the same. Linux 6.12 and
/// newer; nothing happens elsewhere. Whether the system took it.
bool ask_for_short_slices(std::chrono::microseconds length) noexcept;

}  // namespace lockstep::dist
