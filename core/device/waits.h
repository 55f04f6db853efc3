#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/stream.h"

namespace lockstep {

/// Times that this process made a thread wait for a device without having been asked to: an
/// operator that returns a C++ value, a copy to the cpu that is not non_blocking, an allocation
/// that had to wait. Stream::synchronize and Event::synchronize are what somebody asked for. With
/// LOCKSTEP_WARN_WAITS=1 each also writes a line to standard error. Thread-safe.
int64_t hidden_waits();
/// Notes one, made by operator `op`, and why.
void count_hidden_wait(std::string_view op, const Stream& stream, std::string_view why);

/// Waits for `stream` and counts it.
void wait_hidden(std::string_view op, const Stream& stream, std::string_view why);

}  // namespace lockstep
