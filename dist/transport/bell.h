#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include "core/base/owned_fd.h"

namespace lockstep::dist {

/// Whether a thread sleeps, in memory that it shares with those who wake it. All zero at first.
///
/// The sleeper says that it will sleep, and looks once more whether there is anything to do; a
/// waker makes something to do visible with a sequentially consistent store, and rings. So either
/// the sleeper sees it, or the waker sees the sleeper. Ringing costs a read where nobody sleeps.
class BellState {
 public:
  /// From any thread of any process; `fd` is the bell's pipe.
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

/// What one thread sleeps on.
class Bell {
 public:
  /// Throws BackendError.
  Bell();
  /// Where its state is, before anything else.
  void attach(BellState& state) noexcept { state_ = &state; }

  /// For those who ring it. A process of this machine opens /proc/<pid>/fd/<this> for both reading
  /// and writing, so that it is no fault to ring for somebody who is gone.
  int fd() const noexcept { return write_.get(); }
  /// From any thread of this process.
  void ring() noexcept { state_->ring(write_.get()); }

  // Of the thread that sleeps: `prepare`, a look, and then one of the others.
  /// `for_files`: it will be `sleep` with files.
  void prepare(bool for_files) noexcept;
  void stay_awake() noexcept;
  /// Until it is rung, or `limit` has passed; may return earlier.
  void sleep(std::chrono::nanoseconds limit) noexcept;
  /// Or until one of `files` is ready, which poll's revents then tell. The first is the bell's own,
  /// and need not be filled in.
  void sleep(std::chrono::nanoseconds limit, std::span<pollfd> files) noexcept;

 private:
  BellState* state_ = nullptr;
  OwnedFd read_;
  OwnedFd write_;
};

}  // namespace lockstep::dist
