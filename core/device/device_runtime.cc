#include "core/device/device_runtime.h"

#include <array>
#include <atomic>
#include <utility>

#include "core/base/check.h"
#include "core/device/stream_sanitizer.h"

namespace lockstep {

namespace {

constinit std::array<std::atomic<DeviceRuntime*>, kDeviceTypes> g_runtimes{};

bool needs_no_runtime(DeviceType type) {
  return type != DeviceType::kHost && type != DeviceType::kCUDA;
}

/// The reason why there is no GPU, as a sentence; "" for other devices.
std::string why_missing(Device device) {
  if (device.type != DeviceType::kCUDA) return "";
  DeviceRuntime* const runtime = device_runtime(device.type);
  const std::string reason =
      runtime == nullptr ? "this build has no CUDA" : runtime->why_unavailable();
  return reason.empty() ? "" : fmt::format(" There is no GPU to use: {}.", reason);
}

/// "cpu, meta, host:0 to host:3".
std::string usable_devices() {
  std::string list = "cpu, meta";
  for (int i = 0; i < kDeviceTypes; ++i) {
    const auto type = static_cast<DeviceType>(i);
    const int count = device_runtime(type) == nullptr ? 0 : device_count(type);
    if (count > 0) list += ", " + to_string(Device{type, 0});
    if (count > 1) list += " to " + to_string(Device{type, static_cast<int8_t>(count - 1)});
  }
  return list;
}

}  // namespace

void DeviceRuntime::launch(const Stream& stream, std::unique_ptr<QueuedKernel>) {
  throw DeviceError(
      fmt::format("[launch] {} does not run the cpu's kernels: expected a device of type host.",
                  to_string(stream)));
}

DeviceRuntime* device_runtime(DeviceType type) noexcept {
  return g_runtimes[static_cast<size_t>(type)].load(std::memory_order_acquire);
}

DeviceRuntime& require_runtime(Device device) {
  DeviceRuntime* const runtime = device_runtime(device.type);
  const bool found =
      runtime != nullptr && device.index >= 0 && device.index < runtime->device_count();
  LS_CHECK(found, DeviceError,
           "[device] there is no device {} with streams: this machine and build have {}.{}",
           to_string(device), usable_devices(), why_missing(device));
  return *runtime;
}

DeviceRuntime* find_runtime(Device device) {
  if (device_runtime(device.type) == nullptr && needs_no_runtime(device.type)) return nullptr;
  return &require_runtime(device);
}

DeviceRuntime* set_device_runtime(DeviceType type, DeviceRuntime* runtime) {
  return g_runtimes[static_cast<size_t>(type)].exchange(runtime, std::memory_order_acq_rel);
}

int device_count(DeviceType type) {
  if (DeviceRuntime* const runtime = device_runtime(type)) return runtime->device_count();
  return type == DeviceType::kCPU || type == DeviceType::kMeta ? 1 : 0;
}

void copy_async(const Stream& stream, void* to, const void* from, size_t bytes,
                Transfer direction) {
  if (bytes == 0) return;
  DeviceRuntime& runtime = require_runtime(stream.device);
  if (stream_sanitizer::enabled()) {
    // Only the device's memory is checked: the cpu's is not used in stream order.
    if (direction != Transfer::kFromCpu) {
      stream_sanitizer::on_use(stream, "copy", from, bytes, /*written=*/false);
    }
    if (direction != Transfer::kToCpu) {
      stream_sanitizer::on_use(stream, "copy", to, bytes, /*written=*/true);
    }
  }
  runtime.copy(stream, to, from, bytes, direction);
}

}  // namespace lockstep
