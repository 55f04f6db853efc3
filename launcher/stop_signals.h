#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace lockstep::launcher {

/// While one exists, SIGINT, SIGTERM and SIGUSR1 ask for a stop instead of ending the process; a
/// second one ends it at once, as if this object did not exist. One at a time.
///
/// The signals are handled on a stack of their own, which the constructing thread gets for as long
/// as the object lives: oneDNN's f32 products keep data below the stack pointer, further than the
/// 128 bytes that a signal's frame spares, and would go on with whatever the frame put there. Other
/// handlers that a program installs need SA_ONSTACK for the same reason.
class StopSignals {
 public:
  /// Throws Error when the system refuses a handler.
  StopSignals();
  /// Restores what the signals did before. For the thread that made it.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that asked for a stop; 0 while none has. Safe to call from any thread.
  int received() const;

 private:
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_;
  struct sigaction before_[3];
};

}  // namespace lockstep::launcher
