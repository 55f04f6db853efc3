#include "core/cuda/launch.h"

#include "core/base/check.h"
#include "core/cuda/runtime.h"

namespace lockstep::cuda {

namespace {

/// Only a Runtime is ever registered for this type of device.
Runtime& runtime_for(const Stream& stream, const char* kernel) {
  LS_CHECK(stream.device.type == DeviceType::kCUDA, DeviceError,
           "[{}] expected a stream of a cuda device, got {}.", kernel, to_string(stream));
  return static_cast<Runtime&>(*device_runtime(DeviceType::kCUDA));
}

}  // namespace

void launch(const Stream& stream, Kernel kernel, const LaunchShape& shape, const void* parameters) {
  runtime_for(stream, "launch").launch_kernel(stream, kernel, shape, parameters);
}

void launch(const Stream& stream, const void* image, const char* kernel, const LaunchShape& shape,
            std::span<const std::byte> parameters) {
  runtime_for(stream, kernel).launch_kernel(stream, image, kernel, shape, parameters);
}

void unload(std::span<const void* const> images) noexcept {
  if (images.empty()) return;
  if (DeviceRuntime* const on = device_runtime(DeviceType::kCUDA); on != nullptr) {
    static_cast<Runtime&>(*on).unload(images);
  }
}

}  // namespace lockstep::cuda
