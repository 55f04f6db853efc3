#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Sleep state of a thread, in memory shared with the threads that wake it. Zero-initialised.
///
/// The sleeper announces that it will sleep and then checks once more for work; a waker publishes
/// work with a sequentially consistent store and then rings. So either the sleeper sees the work or
/// the waker sees the sleeper. Ringing costs one load if the thread is awake.
class BellState {
 public:
  /// Called from any thread of any process; `fd` is the bell's pipe.
  void ring(int fd) noexcept {
    if (state_.load(std::memory_order_seq_cst) != kAwake) wake(fd);
  }

 private:
  friend class Bell;
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kAsleep = 1;
  static constexpr uint32_t kPolling = 2;

  void wake(int fd) noexcept;

  std::atomic<uint32_t> state_{kAwake};
};

/// Lets one thread sleep until it is rung.
class Bell {
 public:
  /// Throws BackendError.
  Bell();
  /// Sets the location of the state; must be called first.
  void attach(BellState& state) noexcept { state_ = &state; }

  /// Descriptor for other processes that ring it. They open /proc/<pid>/fd/<this> for both reading
  /// and writing, so that ringing a process that has ended raises no SIGPIPE.
  int fd() const noexcept { return write_.get(); }
  /// Called from any thread of this process.
  void ring() noexcept { state_->ring(write_.get()); }

  // Called by the sleeping thread: `prepare`, then a check for work, then one of the others.
  /// `for_files`: the `sleep` with files will follow.
  void prepare(bool for_files) noexcept;
  void stay_awake() noexcept;
  /// Sleeps until rung or until `limit` has passed; may return earlier.
  void sleep(std::chrono::nanoseconds limit) noexcept;
  /// Sleeps also until one of `files` is ready, as reported in its `revents`. The first element is
  /// used by the bell and need not be filled in.
  void sleep(std::chrono::nanoseconds limit, std::span<pollfd> files) noexcept;

 private:
  BellState* state_ = nullptr;
  OwnedFd read_;
  OwnedFd write_;
};

}  // namespace lockstep::dist
