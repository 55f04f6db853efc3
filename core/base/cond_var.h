#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/mutex.h"

namespace lockstep {

/// std::condition_variable for a UniqueLock of a Mutex. The lock counts as held during a wait. The
/// condition of a wait is a lambda that needs `LS_REQUIRES(mutex)` when it reads guarded members.
class CondVar {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  void wait(UniqueLock<Mutex>& lock) {
    Adopted adopted(*lock.lock_);
    changed_.wait(adopted.native);
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(UniqueLock<Mutex>& lock,
                            const std::chrono::time_point<Clock, Duration>& deadline) {
    Adopted adopted(*lock.lock_);
    return changed_.wait_until(adopted.native, deadline);
  }
  template <class Rep, class Period>
  std::cv_status wait_for(UniqueLock<Mutex>& lock,
                          const std::chrono::duration<Rep, Period>& timeout) {
    Adopted adopted(*lock.lock_);
    return changed_.wait_for(adopted.native, timeout);
  }

  // Not analysed: that the lock of `done` is `lock` cannot be expressed.
  template <class Done>
  void wait(UniqueLock<Mutex>& lock, Done done) LS_NO_THREAD_SAFETY_ANALYSIS {
    while (!done()) wait(lock);
  }
  /// Returns whether `done()`.
  template <class Clock, class Duration, class Done>
  bool wait_until(UniqueLock<Mutex>& lock, const std::chrono::time_point<Clock, Duration>& deadline,
                  Done done) LS_NO_THREAD_SAFETY_ANALYSIS {
    while (!done()) {
      if (wait_until(lock, deadline) == std::cv_status::timeout) return done();
    }
    return true;
  }
  template <class Rep, class Period, class Done>
  bool wait_for(UniqueLock<Mutex>& lock, const std::chrono::duration<Rep, Period>& timeout,
                Done done) LS_NO_THREAD_SAFETY_ANALYSIS {
    return wait_until(lock,
                      std::chrono::steady_clock::now() +
                          std::chrono::ceil<std::chrono::steady_clock::duration>(timeout),
                      std::move(done));
  }

 private:
  /// The held mutex as a std::unique_lock, which stays held.
  struct Adopted {
    explicit Adopted(Mutex& mutex) : native(mutex.mutex_, std::adopt_lock) {}
    ~Adopted() { native.release(); }
    std::unique_lock<std::mutex> native;
  };
  std::condition_variable changed_;
};

}  // namespace lockstep
