#pragma once

#include <cstdint>

namespace lockstep {

/// Calls of operator new by the calling thread so far. Linking heap_calls.cc replaces operator new
/// by one that counts.
int64_t heap_calls();

}  // namespace lockstep
