#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep {

/// What a device's driver tells afterwards of the work that it ran, for profiles. Times are
/// steady_clock's, in ns.
struct DeviceActivities {
  /// A call on the host that queued work.
  struct Call {
    std::string name;     ///< of the driver's function: "cuLaunchKernel"
    uint64_t thread = 0;  ///< the system's number
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint64_t number = 0;  ///< ties it to its work
  };
  /// A kernel, copy or fill.
  struct Work {
    std::string name;  ///< of the kernel, or "copy host to device"
    int device = 0;
    int stream = 0;  ///< the driver's number
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int64_t bytes = 0;  ///< copied or filled
    uint64_t call = 0;  ///< number of the call that queued it
  };

  std::vector<Call> calls;  ///< those that queued some of the work
  std::vector<Work> work;
  uint64_t lost = 0;  ///< records that did not fit
};

/// How the work of a kind of device is recorded. Both functions may be called from one thread at a
/// time.
struct ActivityRecorder {
  /// Begins. Returns why nothing can be recorded, without a full stop, or "".
  std::string (*start)() = nullptr;
  /// Ends what `start` began, and returns what the devices did. What they have not finished is left
  /// out.
  DeviceActivities (*stop)() = nullptr;
};

/// Sets the recorder of a kind of device.
void register_activity_recorder(DeviceType type, const ActivityRecorder& recorder);
/// Null if the device has none: workers of its streams record what they run, or nothing is queued.
const ActivityRecorder* activity_recorder(DeviceType type);

}  // namespace lockstep
