#include "kernels/cuda/launch.h"

#include "core/cuda/runtime.h"
#include "core/device_runtime.h"

namespace lockstep::cuda {

Fault* fault_place(const std::string& op, const std::string& what) {
  const Device device = kernel_stream().device;
  return static_cast<Runtime&>(require_runtime(device)).faults(device.index).place(op, what);
}

}  // namespace lockstep::cuda
