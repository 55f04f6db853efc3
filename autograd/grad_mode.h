#pragma once

#include "core/dispatch_key.h"

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

}  // namespace lockstep
