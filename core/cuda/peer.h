#pragma once

#include <cstddef>

#include "core/tensor/stream.h"

namespace lockstep::cuda {

/// Whether the first device can reach the second one's memory by itself, over NVLink or PCIe; else
/// copies between them go through the memory of the cpu. Throws DeviceError.
bool reaches_peer(int device, int peer);

/// Lets `device` reach memory of `peer` that was allocated as a whole (DeviceMemory::allocate), for
/// the life of the process. Throws DeviceError.
void open_peer(int device, int peer);

/// Queues a copy between two devices, on a stream of one of them. Throws DeviceError.
void copy_between(const Stream& stream, void* to, int to_device, const void* from, int from_device,
                  size_t bytes);

}  // namespace lockstep::cuda
