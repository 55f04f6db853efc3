#include "core/device/device_runtime.h"

#include <array>
#include <atomic>
#include <utility>

#include "core/base/check.h"
#include "core/device/stream_sanitizer.h"

namespace lockstep {

namespace {

constinit std::array<std::atomic<DeviceRuntime*>, kDeviceTypes> g_runtimes{};

/// Whether devices of this type may be used without a runtime: those on which calls finish before
/// they return, and slots, whose backend may bring only an allocator.
bool may_lack_runtime(DeviceType type) {
  return !is_asynchronous(type) || type >= DeviceType::kPrivate1;
}

/// The reason why the runtime has no device to use, as a sentence; "" if it gives none.
std::string why_missing(Device device) {
  DeviceRuntime* const runtime = device_runtime(device.type);
  const bool is_gpu = device.type == DeviceType::kCUDA;
  std::string reason;
  if (runtime != nullptr) {
    reason = runtime->why_unavailable();
  } else if (is_gpu) {
    reason = "this build has no CUDA";
  }
  if (reason.empty()) return "";
  return fmt::format(" There is no {} to use: {}.", is_gpu ? "GPU" : "device of this type", reason);
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

void DeviceRuntime::copy_between(const Stream& stream, void* to, Device, const void* from, Device,
                                 size_t bytes) {
  copy(stream, to, from, bytes, Transfer::kWithin);
}

void DeviceRuntime::launch(const Stream& stream, std::unique_ptr<QueuedKernel>) {
  throw DeviceError(
      fmt::format("[launch] {} does not run the cpu's kernels: expected a device whose runtime "
                  "does, such as host:0.",
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
  if (device_runtime(device.type) == nullptr && may_lack_runtime(device.type)) return nullptr;
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

void copy_between_async(const Stream& stream, void* to, Device to_device, const void* from,
                        Device from_device, size_t bytes) {
  if (bytes == 0) return;
  DeviceRuntime& runtime = require_runtime(stream.device);
  if (stream_sanitizer::enabled()) {
    stream_sanitizer::on_use(stream, "copy", from, bytes, /*written=*/false);
    stream_sanitizer::on_use(stream, "copy", to, bytes, /*written=*/true);
  }
  runtime.copy_between(stream, to, to_device, from, from_device, bytes);
}

}  // namespace lockstep
