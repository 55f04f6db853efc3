#include "core/cuda/launch.h"

#include "core/check.h"
#include "core/cuda/runtime.h"

namespace lockstep::cuda {

void launch(const Stream& stream, std::span<const void* const> images, const char* kernel,
            const LaunchShape& shape, const void* parameters) {
  LS_CHECK(stream.device.type == DeviceType::kCUDA, DeviceError,
           "[{}] expected a stream of a cuda device, got {}.", kernel, to_string(stream));
  // Whatever serves this type of device is one of ours.
  auto& on = static_cast<Runtime&>(require_runtime(stream.device));
  void* arguments[] = {const_cast<void*>(parameters)};
  on.launch_kernel(stream, on.function(stream.device.index, images, kernel), shape, arguments);
}

}  // namespace lockstep::cuda
