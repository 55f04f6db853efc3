#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/stream.h"

namespace lockstep {

/// Number of times that this process made a thread wait for a device implicitly: an operator that
/// returns a C++ value, a copy to the cpu that is not non_blocking, an allocation that had to wait.
/// Explicit waits (Stream::synchronize, Event::synchronize) do not count. LOCKSTEP_WARN_WAITS=1
/// also writes a line to standard error for each. Thread-safe.
int64_t hidden_waits();
/// Counts one wait, made by operator `op`, and why.
void count_hidden_wait(std::string_view op, const Stream& stream, std::string_view why);

/// Waits for `stream` and counts the wait.
void wait_hidden(std::string_view op, const Stream& stream, std::string_view why);

}  // namespace lockstep
