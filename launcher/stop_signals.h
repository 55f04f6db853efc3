#pragma once

#include <csignal>

namespace lockstep::launcher {

/// While one exists, SIGINT, SIGTERM and SIGUSR1 ask for a stop instead of ending the process; a
/// second one ends it at once, as if this object did not exist. One at a time.
class StopSignals {
 public:
  StopSignals();
  /// Restores what the signals did before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that asked for a stop; 0 while none has. Safe to call from any thread.
  int received() const;

 private:
  struct sigaction before_[3];
};

}  // namespace lockstep::launcher
