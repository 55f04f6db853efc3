#pragma once

#include <csignal>

namespace lockstep {

/// While alive, the calling thread takes no signals but the faults that it raises itself. A thread
/// that it makes meanwhile starts that way and stays so: signals of the program are for the
/// program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() noexcept;
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// False where the system refused; then nothing has changed.
  bool blocked() const noexcept { return blocked_; }

 private:
  sigset_t before_;
  bool blocked_;
};

}  // namespace lockstep
