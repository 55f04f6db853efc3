#pragma once

#include <chrono>
#include <csignal>
#include <optional>

#include "core/base/owned_fd.h"

namespace lockstep::launcher {

/// While one exists, SIGINT, SIGTERM, SIGUSR1 and SIGHUP of this process are read here instead of
/// interrupting it. Those that were ignored stay so. For programs of one thread.
class SignalQueue {
 public:
  /// Throws Error with the system's reason.
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Readable while there is a signal.
  int fd() const { return fd_.get(); }
  /// The next one; 0 if there is none. Never blocks.
  int take();
  /// Waits for one; 0 after `time`.
  int take_within(std::chrono::milliseconds time);

 private:
  sigset_t before_;
  OwnedFd fd_;
};

/// "SIGTERM".
const char* signal_name(int signal);

}  // namespace lockstep::launcher
