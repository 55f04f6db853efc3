#include "launcher/driver_memory.h"

#include "core/device/device_runtime.h"
#include "core/memory/cpu_memory.h"

namespace lockstep::launcher {

DeviceMemory& driver_memory(Device device) {
  if (device.type != DeviceType::kCPU) return require_runtime(device).memory(device.index);
  static CpuMemory memory(cpu_memory_total());
  return memory;
}

}  // namespace lockstep::launcher
