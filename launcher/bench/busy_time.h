#pragma once

#include <cstdint>

namespace lockstep::launcher {

/// CPU seconds that this machine has been busy since it started: all programs, the kernel and its
/// interrupts, so also what sending and receiving costs outside any process. From /proc/stat, which
/// counts in ticks of some 10 ms. Throws InternalError where that cannot be read.
double busy_seconds();

/// Equal for processes that run on one kernel, and so read one /proc/stat, whatever their
/// containers and hosts' names are; other numbers elsewhere.
int64_t kernel_identity();

}  // namespace lockstep::launcher
