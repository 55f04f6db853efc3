#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/scoped_value.h"

namespace lockstep {

/// The last four are slots for backends that shared libraries bring.
enum class DeviceType : uint8_t {
  kCPU,
  kHost,
  kCUDA,
  kMeta,
  kPrivate1,
  kPrivate2,
  kPrivate3,
  kPrivate4,
};
inline constexpr int kDeviceTypes = 8;
/// Devices of one type are numbered below this.
inline constexpr int kMaxDevices = 16;

/// Where a tensor's bytes are. `cpu` and `meta` have one device; the others are numbered.
struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};
inline constexpr Device kCPU{DeviceType::kCPU, 0};
inline constexpr Device kMeta{DeviceType::kMeta, 0};

/// "cpu", "meta", "host:0", "cuda:1", "private1:0".
std::string to_string(Device device);
/// Inverse of `to_string`; "cuda" means this process's own device of that type (set_own_device). A
/// slot also answers to the name that its backend gave it. Throws DeviceError naming the accepted
/// forms.
Device parse_device(std::string_view text);

/// Makes `device` the one that its type's name alone means to `parse_device`: number 0 until then.
/// Ranks of one host have one each. Throws DeviceError unless the number is below kMaxDevices.
/// Thread-safe.
void set_own_device(Device device);

/// Names a slot for `to_string` and `parse_device`; "" takes the name back. Throws DeviceError
/// unless the name is new and of small letters. Thread-safe.
void name_device_type(DeviceType slot, std::string_view name);

/// Whether calls on devices of this type return before their kernels have run: host and cuda, and
/// the slots whose backends say so.
bool is_asynchronous(DeviceType type) noexcept;
/// For the backend of a slot. Throws DeviceError for other types. Thread-safe.
void set_asynchronous(DeviceType slot, bool asynchronous);

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
  explicit DefaultDeviceGuard(Device device) noexcept : device_(detail::thread_device, device) {}

 private:
  ScopedValue<Device> device_;
};

}  // namespace lockstep
