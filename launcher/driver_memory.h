#pragma once

#include "core/device/device_memory.h"
#include "core/tensor/device.h"

namespace lockstep::launcher {

/// The memory that a caching allocator of the device stands on, for allocators besides the
/// process's own. Throws DeviceError when there is no such device.
DeviceMemory& driver_memory(Device device);

}  // namespace lockstep::launcher
