#pragma once

#include <cstddef>

#include "core/device/device_activity.h"

namespace lockstep::cuda {

/// Sizes of the buffers that CUPTI fills while it records. Their memory is reserved when recording
/// starts, and taken as they fill.
struct ActivityLimits {
  size_t buffers = 64;
  size_t bytes = size_t{2} << 20;  ///< of each: some 8,000 kernels with their launches
};

// Defined where the toolkit has CUPTI's headers (core/cuda/cupti.h).

/// Begins to record the kernels, copies and fills of all cuda devices, with the calls that queue
/// them, through CUPTI. Returns why it cannot, or "". One recording at a time in a process.
std::string start_activities(const ActivityLimits& limits = {});
/// Ends the recording, and returns what the devices did and have finished.
DeviceActivities stop_activities();

}  // namespace lockstep::cuda
