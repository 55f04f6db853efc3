#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// True while operators of this thread are recorded when an argument requires grad. On at first.
inline bool is_grad_enabled() noexcept { return !detail::thread_keys.excluded.has(Key::kAutograd); }

/// While alive, recording is on or off on this thread. Guards nest like scopes.
class SetGradEnabled {
 public:
  explicit SetGradEnabled(bool enabled) noexcept : saved_(detail::thread_keys.excluded) {
    detail::thread_keys.excluded = enabled ? saved_ - Key::kAutograd : saved_ | Key::kAutograd;
  }
  ~SetGradEnabled() { detail::thread_keys.excluded = saved_; }
  SetGradEnabled(const SetGradEnabled&) = delete;
  SetGradEnabled& operator=(const SetGradEnabled&) = delete;

 private:
  KeySet saved_;
};

/// While alive, nothing is recorded on this thread: results do not require grad, and tensors that
/// do may be changed in place.
class NoGradGuard : public SetGradEnabled {
 public:
  NoGradGuard() noexcept : SetGradEnabled(false) {}
};

/// While alive, recording is on, also inside a NoGradGuard.
class EnableGradGuard : public SetGradEnabled {
 public:
  EnableGradGuard() noexcept : SetGradEnabled(true) {}
};

inline bool is_inference_mode_enabled() noexcept { return detail::inference_mode; }

/// While alive, this thread records nothing, as under a NoGradGuard, and the tensors it makes can
/// never take part in a recorded computation: they cannot be changed in place, saved for a backward
/// or made to require grad outside of this mode. `InferenceModeGuard(false)` ends it for a scope.
class InferenceModeGuard : public SetGradEnabled {
 public:
  explicit InferenceModeGuard(bool enabled = true) noexcept
      : SetGradEnabled(!enabled), saved_(detail::inference_mode) {
    detail::inference_mode = enabled;
  }
  ~InferenceModeGuard() { detail::inference_mode = saved_; }

 private:
  bool saved_;
};

}  // namespace lockstep
