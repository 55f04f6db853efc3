#pragma once

#include "core/device/device_memory.h"
#include "core/tensor/device.h"

namespace lockstep::launcher {

/// The driver-level memory below the caching allocator of `device`, for constructing further
/// allocators besides the process's own. Throws DeviceError if there is no such device.
DeviceMemory& driver_memory(Device device);

}  // namespace lockstep::launcher
