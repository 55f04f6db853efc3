#pragma once

#include <cstdint>
#include <functional>

#include "core/memory/allocation_trace.h"
#include "core/tensor/allocator.h"

namespace lockstep {

/// What an allocator made of a trace.
struct ReplayResult {
  int64_t peak_live_bytes = 0;      ///< as asked for
  int64_t peak_reserved_bytes = 0;  ///< taken from the device
  int64_t driver_calls = 0;
  /// Of these, made after the second mark; all, without one.
  int64_t driver_calls_after_first_step = 0;

  double ratio() const {
    return static_cast<double>(peak_reserved_bytes) /
           static_cast<double>(peak_live_bytes > 0 ? peak_live_bytes : 1);
  }
};

/// Replays `trace` on `stream`, while nobody else uses the allocator, and frees what is still on
/// loan at its end. `on_mark` is called at each mark; what it does belongs to the step before.
/// Throws what `allocate` throws.
ReplayResult replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                    const std::function<void()>& on_mark = {});

/// The same without counting: nanoseconds that one block's allocation and free take, `on_mark`
/// included. The first replay through an allocator has the driver's time in it.
double time_replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                   const std::function<void()>& on_mark = {});

}  // namespace lockstep
