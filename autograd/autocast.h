#pragma once

#include <array>

#include "core/base/scoped_value.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

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

/// Sets this thread's autocast state; the destructor restores the previous one.
/// `AutocastStateGuard({})` turns autocast off everywhere, as backward does.
class AutocastStateGuard {
 public:
  explicit AutocastStateGuard(const AutocastState& state) noexcept;
  ~AutocastStateGuard();
  AutocastStateGuard(const AutocastStateGuard&) = delete;
  AutocastStateGuard& operator=(const AutocastStateGuard&) = delete;

 private:
  ScopedValue<AutocastState> state_;
  bool was_included_;
};

/// While alive, operators of this thread cast the floating arguments that are on devices of one
/// type, by the class in their blocks (`.autocast(...)`, shown by `lockstep ops NAME`):
///
/// - lower precision (products, convolutions, attention): to `dtype`;
/// - f32 (losses, norms, sums, exponentials): up to f32;
/// - promote (cat, stack, ...): to the widest among them;
/// - none: not cast. In composites of this class the operators of the body decide.
///
/// f64 is never cast, nor are arguments of in-place and out= forms. The casts are recorded, so f32
/// weights get f32 gradients. A leaf in f32 that requires grad is cast once: the result is kept
/// until the outermost region of the thread ends, unless `cache_enabled` is false. Regions nest
/// like scopes; inside one with `enabled` false nothing is cast. Backward runs with autocast off.
/// See docs/mixed_precision.md.
class AutocastGuard {
 public:
  /// Throws DTypeError when `dtype` is neither bf16 nor f16.
  explicit AutocastGuard(DeviceType type, bool enabled = true, DType dtype = DType::kBF16,
                         bool cache_enabled = true);

 private:
  AutocastStateGuard state_;
};

/// Clears this thread's cache of cast weights. The end of the outermost region does that too; a
/// weight that was changed in place is cast again without it.
void clear_autocast_cache() noexcept;

}  // namespace lockstep
