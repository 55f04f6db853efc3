#pragma once

#include <cstdint>

#include "dist/group/process_group.h"

namespace lockstep::launcher {

/// By how many nanoseconds this rank's wall clock is ahead of rank 0's. Each rank exchanges some
/// messages with rank 0; the quickest of them bounds the error to half its time there and back.
/// Collective.
int64_t clock_offset_ns(dist::ProcessGroup& group);

}  // namespace lockstep::launcher
