#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class DeviceType : uint8_t { kCPU, kHost, kCUDA, kMeta };

/// Where a tensor's bytes are. `cpu` and `meta` have one device; `host` and `cuda` are numbered.
struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};
inline constexpr Device kCPU{DeviceType::kCPU, 0};
inline constexpr Device kMeta{DeviceType::kMeta, 0};

/// "cpu", "meta", "host:0", "cuda:1".
std::string to_string(Device device);
/// Inverse of `to_string`; "cuda" means "cuda:0". Throws DeviceError naming the accepted forms.
Device parse_device(std::string_view text);

namespace detail {
inline thread_local constinit Device thread_device = kCPU;
}  // namespace detail

/// Where this thread's factories make a tensor when nothing names a device: cpu, unless a guard
/// says otherwise.
inline Device default_device() noexcept { return detail::thread_device; }

/// While alive, this thread's factories make tensors on `device` where nothing names one. Under
/// `meta` a model is built and run for its shapes alone. Tensors made without the dispatcher
/// (empty_tensor) name their device themselves.
class DefaultDeviceGuard {
 public:
  explicit DefaultDeviceGuard(Device device) : saved_(detail::thread_device) {
    detail::thread_device = device;
  }
  ~DefaultDeviceGuard() { detail::thread_device = saved_; }
  DefaultDeviceGuard(const DefaultDeviceGuard&) = delete;
  DefaultDeviceGuard& operator=(const DefaultDeviceGuard&) = delete;

 private:
  Device saved_;
};

}  // namespace lockstep
