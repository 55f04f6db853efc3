#pragma once

#include <cstdint>

namespace lockstep::launcher {

/// CPU seconds that this machine has been busy since it booted: all programs, the kernel and its
/// interrupts, including network work outside any process. Read from /proc/stat, which counts in
/// ticks of some 10 ms. Throws InternalError if that cannot be read.
double busy_seconds();

/// Identifies the running kernel: equal for processes that share it, and so one /proc/stat, even in
/// different containers or under different host names.
int64_t kernel_identity();

}  // namespace lockstep::launcher
