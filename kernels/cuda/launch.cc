#include "kernels/cuda/launch.h"

#include "core/cuda/runtime.h"
#include "core/device/device_runtime.h"

namespace lockstep::cuda {

Fault* fault_place(const FaultKind& kind) {
  const Device device = kernel_stream().device;
  return static_cast<Runtime&>(*device_runtime(DeviceType::kCUDA)).faults(device.index).place(kind);
}

}  // namespace lockstep::cuda
