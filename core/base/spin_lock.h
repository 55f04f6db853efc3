#pragma once

#include <sched.h>

#include <atomic>

#include "core/base/thread_annotations.h"

namespace lockstep {

/// A lock for critical sections of a few instructions; uncontended, it costs half as much as a
/// mutex. A contended lock() polls briefly and then yields the core. Use it with MutexLock
/// (core/base/mutex.h).
class LS_CAPABILITY("spin lock") SpinLock {
 public:
  void lock() noexcept LS_ACQUIRE() {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() noexcept LS_RELEASE() { held_.store(false, std::memory_order_release); }
  /// Tells the thread-safety analysis that the lock is held, under another name. Does nothing.
  void assert_held() const noexcept LS_ASSERT_HELD() {}

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
