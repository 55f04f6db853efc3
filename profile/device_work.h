#pragma once

#include "core/device/device_activity.h"
#include "profile/profile.h"

namespace lockstep::profile {

/// Adds what devices' drivers recorded: for each call that queued work a launch, inside what its
/// thread did at that moment, and for each stream of a device a thread with the kernels and copies
/// that it ran. The profile begins at `begin_ns` of steady_clock. To be called before spans are
/// tied to each other.
void add_activities(Profile& profile, const DeviceActivities& activities, int64_t begin_ns);

}  // namespace lockstep::profile
