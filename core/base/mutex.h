#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/thread_annotations.h"

namespace lockstep {

/// std::mutex with the annotations that clang's thread-safety analysis needs.
class LS_CAPABILITY("mutex") Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() LS_ACQUIRE() { mutex_.lock(); }
  bool try_lock() LS_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() LS_RELEASE() { mutex_.unlock(); }
  /// Tells the thread-safety analysis that the lock is held, under another name. Does nothing.
  void assert_held() const noexcept LS_ASSERT_HELD() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// std::recursive_mutex with the annotations.
class LS_CAPABILITY("mutex") RecursiveMutex {
 public:
  RecursiveMutex() = default;
  RecursiveMutex(const RecursiveMutex&) = delete;
  RecursiveMutex& operator=(const RecursiveMutex&) = delete;

  void lock() LS_ACQUIRE() { mutex_.lock(); }
  void unlock() LS_RELEASE() { mutex_.unlock(); }
  /// Tells the thread-safety analysis that the lock is held, under another name. Does nothing.
  void assert_held() const noexcept LS_ASSERT_HELD() {}

 private:
  std::recursive_mutex mutex_;
};

/// Holds a lock (Mutex, RecursiveMutex or SpinLock) while alive, as std::lock_guard does.
template <class Lockable>
class LS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Lockable& lock) LS_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~MutexLock() LS_RELEASE() { lock_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Lockable& lock_;
};

/// Holds a lock that may be released and taken again while it is alive, as std::unique_lock does.
template <class Lockable>
class LS_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Lockable& lock) LS_ACQUIRE(lock) : lock_(&lock) {
    lock_->lock();
    owns_ = true;
  }
  /// Takes over a lock that the caller holds.
  UniqueLock(Lockable& lock, std::adopt_lock_t) LS_REQUIRES(lock) : lock_(&lock), owns_(true) {}
  ~UniqueLock() LS_RELEASE() {
    if (owns_) lock_->unlock();
  }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() LS_ACQUIRE() {
    lock_->lock();
    owns_ = true;
  }
  void unlock() LS_RELEASE() {
    owns_ = false;
    lock_->unlock();
  }
  bool owns_lock() const noexcept { return owns_; }

 private:
  friend class CondVar;
  Lockable* lock_;
  bool owns_ = false;
};

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
