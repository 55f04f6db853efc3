#pragma once

#include <csignal>

namespace lockstep {

/// While alive, blocks all signals on the calling thread except the faults that the thread raises
/// itself. A thread created meanwhile inherits the mask and keeps it, so that signals sent to the
/// process go to the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() noexcept;
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// False if the system call failed; then the mask is unchanged.
  bool blocked() const noexcept { return blocked_; }

 private:
  sigset_t before_;
  bool blocked_;
};

}  // namespace lockstep
