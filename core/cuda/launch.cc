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

void launch(const Stream& stream, const void* image, const char* kernel, const LaunchShape& shape,
            std::span<const std::byte> parameters) {
  auto& on = static_cast<Runtime&>(require_runtime(stream.device));
  const CUfunction function = on.function(stream.device.index, std::span(&image, 1), kernel);
  const size_t taken = on.parameter_bytes(stream.device.index, function);
  LS_CHECK(taken == parameters.size(), DeviceError,
           "[{}] expected {} bytes for the kernel's one parameter, got {}. Does its struct differ "
           "between the module and the host's code?",
           kernel, taken, parameters.size());
  void* arguments[] = {const_cast<std::byte*>(parameters.data())};
  on.launch_kernel(stream, function, shape, arguments);
}

void unload(std::span<const void* const> images) noexcept {
  if (images.empty()) return;
  if (DeviceRuntime* const on = device_runtime(DeviceType::kCUDA); on != nullptr) {
    static_cast<Runtime&>(*on).unload(images);
  }
}

}  // namespace lockstep::cuda
