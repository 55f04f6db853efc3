#pragma once

#include <chrono>
#include <csignal>
#include <optional>

#include "core/base/owned_fd.h"

namespace lockstep::launcher {

/// While an object exists, SIGINT, SIGTERM, SIGUSR1 and SIGHUP are blocked and read from it
/// instead. Signals that were ignored stay ignored. For single-threaded programs.
class SignalQueue {
 public:
  /// Throws Error with the system's reason.
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Descriptor for poll: readable while there is a signal.
  int fd() const { return fd_.get(); }
  /// Returns the next signal; 0 if there is none. Does not block.
  int take();
  /// Waits for a signal, at most `time`; then returns 0.
  int take_within(std::chrono::milliseconds time);

 private:
  sigset_t before_;
  OwnedFd fd_;
};

/// Name of a signal: "SIGTERM".
const char* signal_name(int signal);

}  // namespace lockstep::launcher
