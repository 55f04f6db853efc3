#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace lockstep::launcher {

/// While an object exists, SIGINT, SIGTERM and SIGUSR1 request a stop instead of ending the
/// process; a second signal ends it at once, with the default action. At most one object may exist.
///
/// The signals are handled on an alternate stack, which belongs to the constructing thread for the
/// object's lifetime: oneDNN's f32 products keep data further below the stack pointer than the
/// 128-byte red zone that a signal frame skips, so a frame on the normal stack would overwrite
/// them. Other handlers that a program installs need SA_ONSTACK for the same reason.
class StopSignals {
 public:
  /// Throws Error if the system refuses a handler.
  StopSignals();
  /// Restores the previous handlers. Must run on the constructing thread.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that requested a stop; 0 if none has. Safe to call from any thread.
  int received() const;

 private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_;
  struct sigaction before_[3];
};

}  // namespace lockstep::launcher
