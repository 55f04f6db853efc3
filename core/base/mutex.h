#pragma once

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
  [[nodiscard]] explicit MutexLock(Lockable& lock) LS_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
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
  [[nodiscard]] explicit UniqueLock(Lockable& lock) LS_ACQUIRE(lock) : lock_(&lock) {
    lock_->lock();
    owns_ = true;
  }
  /// Takes over a lock that the caller holds.
  [[nodiscard]] UniqueLock(Lockable& lock, std::adopt_lock_t) LS_REQUIRES(lock)
      : lock_(&lock), owns_(true) {}
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

}  // namespace lockstep
