#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/scoped_value.h"

namespace lockstep {

/// Kinds of devices. The last four are slots for backends loaded from shared libraries.
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
/// Upper bound of device numbers within one type.
inline constexpr int kMaxDevices = 16;

/// The device on which a tensor's bytes are. `cpu` and `meta` have one device each; the others are
/// numbered.
struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};
inline constexpr Device kCPU{DeviceType::kCPU, 0};
inline constexpr Device kMeta{DeviceType::kMeta, 0};

/// "cpu", "meta", "host:0", "cuda:1", "private1:0".
std::string to_string(Device device);
/// Inverse of `to_string`. "cuda" without a number means this process's own device of that type
/// (set_own_device). A slot is also found by the name that its backend gave it. Throws DeviceError
/// naming the accepted forms.
Device parse_device(std::string_view text);

/// Makes `device` the one that `parse_device` returns for its type's name alone; number 0 by
/// default. Each rank on a host sets its own. Throws DeviceError unless the number is below
/// kMaxDevices. Thread-safe.
void set_own_device(Device device);

/// Sets the name that `to_string` and `parse_device` use for a slot; "" removes it. Throws
/// DeviceError unless the name is unused and consists of lower-case letters. Thread-safe.
void name_device_type(DeviceType slot, std::string_view name);

/// The names that slots have now, in the order of slots. Thread-safe.
std::vector<std::string> given_device_names();

/// Whether calls on devices of this type return before their kernels have run: host and cuda, and
/// the slots whose backends say so.
bool is_asynchronous(DeviceType type) noexcept;
/// Sets `is_asynchronous` of a slot, for its backend. Throws DeviceError for other types.
/// Thread-safe.
void set_asynchronous(DeviceType slot, bool asynchronous);

namespace detail {
inline thread_local constinit Device thread_device = kCPU;
}  // namespace detail

/// Device on which this thread's factories make a tensor if no device is given: cpu, unless a
/// DefaultDeviceGuard is active.
inline Device default_device() noexcept { return detail::thread_device; }

/// While alive, this thread's factories make tensors on `device` if no device is given. Under
/// `meta` a model is built and run for its shapes only. Does not affect functions that bypass the
/// dispatcher (empty_tensor).
class DefaultDeviceGuard {
 public:
  [[nodiscard]] explicit DefaultDeviceGuard(Device device) noexcept
      : device_(detail::thread_device, device) {}

 private:
  ScopedValue<Device> device_;
};

}  // namespace lockstep
