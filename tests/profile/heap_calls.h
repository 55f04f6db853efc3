#pragma once

#include <cstdint>

namespace lockstep::profile {

/// Number of calls of `new` that the calling thread has made in this program.
int64_t heap_calls() noexcept;

}  // namespace lockstep::profile
