#pragma once

#include "core/base/phase.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// What the calls of a thread depend on besides their arguments, as far as core knows it: keys
/// (grad mode among them), inference mode, default device, phase, modes and observers.
struct ThreadState {
  detail::ThreadKeys keys;
  bool inference_mode = false;
  Device device;
  Phase phase = Phase::kForward;
  ActiveModes modes;
  const ObserverGuard* observer = nullptr;

  /// The calling thread's.
  static ThreadState capture() noexcept;
  /// The same without modes and observers, which are of one thread.
  ThreadState without_modes() const noexcept;
};

/// While alive, the calling thread has `state`.
class ThreadStateGuard {
 public:
  explicit ThreadStateGuard(const ThreadState& state) noexcept;
  ~ThreadStateGuard();
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  ThreadState saved_;
};

}  // namespace lockstep
