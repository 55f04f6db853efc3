#pragma once

#include <array>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// The autocast state of one thread. A value, so that work done later, by another thread or again
/// (checkpointing), can run in the state in which it was requested.
struct AutocastState {
  struct OnDevice {
    bool enabled = false;
    DType dtype = DType::kBF16;  ///< dtype of the arguments of lower-precision operators
    friend bool operator==(const OnDevice&, const OnDevice&) = default;
  };
  std::array<OnDevice, kDeviceTypes> devices{};
  /// Whether casts of weights are kept until the outermost region ends.
  bool cache_enabled = true;

  OnDevice& on(DeviceType type) { return devices[static_cast<size_t>(type)]; }
  const OnDevice& on(DeviceType type) const { return devices[static_cast<size_t>(type)]; }
  friend bool operator==(const AutocastState&, const AutocastState&) = default;
};

namespace detail {
inline thread_local constinit AutocastState autocast_state{};
}  // namespace detail

/// The calling thread's state. A new thread has autocast off everywhere.
inline const AutocastState& autocast_state() noexcept { return detail::autocast_state; }
/// Whether operators on tensors of this device type cast their arguments.
inline bool is_autocast_enabled(DeviceType type) noexcept {
  return detail::autocast_state.on(type).enabled;
}
/// The dtype that lower-precision operators compute in on this device type while it is enabled.
inline DType autocast_dtype(DeviceType type) noexcept {
  return detail::autocast_state.on(type).dtype;
}

}  // namespace lockstep
