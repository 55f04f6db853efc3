#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/base/owned_fd.h"
#include "core/base/service_thread.h"

namespace lockstep::launcher {

/// While an object exists, SIGINT, SIGTERM, SIGUSR1 and SIGHUP request a stop instead of ending the
/// process; a second signal ends it at once, with the default action. SIGHUP stays ignored if it
/// was, as under nohup. At most one object may exist.
///
/// The first signal says on standard error, from its handler, what the process is waiting for: see
/// `wait_for` and `end_at_once`.
///
/// The signals are handled on an alternate stack, which belongs to the constructing thread for the
/// object's lifetime: oneDNN's f32 products keep data further below the stack pointer than the
/// 128-byte red zone that a signal frame skips, so a frame on the normal stack would overwrite
/// them. Other handlers that a program installs need SA_ONSTACK for the same reason.
class StopSignals {
 public:
  /// Begins with nothing to say. Throws Error if the system refuses a handler.
  StopSignals();
  /// Restores the previous handlers. Must run on the constructing thread.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that requested a stop; 0 if none has. Safe to call from any thread.
  int received() const;

  /// From now on a first signal is remembered, and says "SIGTERM: stopping ... after WHAT", or
  /// nothing if `what` is null. `what` must live as long as the process.
  void wait_for(const char* what);
  /// From now on there is nothing to wait for and nothing to save: a first signal ends the process
  /// with exit status kStopped, after saying "SIGTERM: MESSAGE", or nothing if `message` is empty.
  /// So does this call if a signal has been received.
  void end_at_once(const std::string& message);
  /// From now on `farewell` is called, on a thread of this object, before a signal of end_at_once
  /// ends the process. Must not throw. Call at most once.
  void before_end(std::function<void()> farewell);

 private:
  void end_when_told();

  std::function<void()> farewell_;
  OwnedFd alarm_;  ///< an eventfd: written to when the process is to end, or this object
  ServiceThread thread_;
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_;
  struct sigaction before_[4];
};

}  // namespace lockstep::launcher
