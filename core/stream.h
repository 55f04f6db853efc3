#pragma once

#include <cstdint>

#include "core/device.h"

namespace lockstep {

/// A queue of work on a device; work on one stream runs in order. A value: copies name the same
/// queue. `cpu` and `meta` have the one stream 0, on which every call finishes before it returns.
struct Stream {
  Device device;
  int32_t id = 0;

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// The stream that this thread's next operator on `device` will use.
inline Stream current_stream(Device device) { return {device, 0}; }

}  // namespace lockstep
