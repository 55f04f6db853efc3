#pragma once

#include <cstdint>
#include <functional>

#include "core/memory/allocation_trace.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// Measurements of an allocator that replayed a trace.
struct ReplayResult {
  int64_t peak_live_bytes = 0;      ///< requested sizes
  int64_t peak_reserved_bytes = 0;  ///< obtained from the device
  int64_t driver_calls = 0;
  /// driver_calls after the second mark; all of them if there is none.
  int64_t driver_calls_after_first_step = 0;

  double ratio() const {
    return static_cast<double>(peak_reserved_bytes) /
           static_cast<double>(peak_live_bytes > 0 ? peak_live_bytes : 1);
  }
};

/// Replays `trace` on `stream` and frees all blocks at its end; no other code may use the allocator
/// meanwhile. Calls `on_mark` at each mark; its cost belongs to the step before. Throws what
/// `allocate` throws.
ReplayResult replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                    const std::function<void()>& on_mark = {});

/// Replays `trace` without counting. Returns nanoseconds for one block's allocation and free,
/// `on_mark` included. The first replay through an allocator includes the driver's time.
double time_replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                   const std::function<void()>& on_mark = {});

}  // namespace lockstep
