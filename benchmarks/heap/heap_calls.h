#pragma once

#include <cstdint>

namespace lockstep {

/// Number of calls of operator new by this thread so far. Linking heap_calls.cc replaces operator
/// new by a counting one.
int64_t heap_calls();

}  // namespace lockstep
