#pragma once

#include "core/base/scoped_value.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Whether operators of this thread are recorded when an argument requires grad. On by default.
inline bool is_grad_enabled() noexcept { return !detail::thread_keys.excluded.has(Key::kAutograd); }

/// While alive, recording is on or off on this thread. Guards nest like scopes.
class SetGradEnabled {
 public:
  [[nodiscard]] explicit SetGradEnabled(bool enabled) noexcept
      : excluded_(detail::thread_keys.excluded,
                  enabled ? detail::thread_keys.excluded - Key::kAutograd
                          : detail::thread_keys.excluded | Key::kAutograd) {}

 private:
  ScopedValue<KeySet> excluded_;
};

/// While alive, nothing is recorded on this thread: results do not require grad, and tensors that
/// do may be changed in place.
class NoGradGuard : public SetGradEnabled {
 public:
  [[nodiscard]] NoGradGuard() noexcept : SetGradEnabled(false) {}
};

/// While alive, recording is on, also inside a NoGradGuard.
class EnableGradGuard : public SetGradEnabled {
 public:
  [[nodiscard]] EnableGradGuard() noexcept : SetGradEnabled(true) {}
};

inline bool is_inference_mode_enabled() noexcept { return detail::inference_mode; }

/// While alive, this thread records nothing, as under a NoGradGuard, and the tensors it makes can
/// never take part in a recorded computation: they cannot be changed in place, saved for a backward
/// or made to require grad outside of this mode. `InferenceModeGuard(false)` ends it for a scope.
class InferenceModeGuard : public SetGradEnabled {
 public:
  [[nodiscard]] explicit InferenceModeGuard(bool enabled = true) noexcept
      : SetGradEnabled(!enabled), mode_(detail::inference_mode, enabled) {}

 private:
  ScopedValue<bool> mode_;
};

}  // namespace lockstep
