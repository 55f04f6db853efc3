#include "core/device/device_activity.h"

#include <array>

namespace lockstep {

namespace {

std::array<ActivityRecorder, kDeviceTypes>& recorders() {
  static std::array<ActivityRecorder, kDeviceTypes> recorders{};
  return recorders;
}

}  // namespace

void register_activity_recorder(DeviceType type, const ActivityRecorder& recorder) {
  recorders()[static_cast<size_t>(type)] = recorder;
}

const ActivityRecorder* activity_recorder(DeviceType type) {
  const ActivityRecorder& recorder = recorders()[static_cast<size_t>(type)];
  return recorder.start != nullptr ? &recorder : nullptr;
}

}  // namespace lockstep
