#pragma once

#include "core/base/phase.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/observer.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// The thread-local state of `core` that operator calls depend on besides their arguments: keys
/// (which include grad mode), inference mode, default device, phase, modes and observers.
struct ThreadState {
  detail::ThreadKeys keys;
  bool inference_mode = false;
  Device device;
  Phase phase = Phase::kForward;
  ActiveModes modes;
  const ObserverGuard* observer = nullptr;

  /// Returns the state of the calling thread.
  static ThreadState capture() noexcept;
  /// Returns a copy without modes and observers, which belong to one thread.
  ThreadState without_modes() const noexcept;
};

/// Gives the calling thread `state`; the destructor restores the previous one.
class ThreadStateGuard {
 public:
  [[nodiscard]] explicit ThreadStateGuard(const ThreadState& state) noexcept;
  ~ThreadStateGuard();
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  ThreadState saved_;
};

}  // namespace lockstep
