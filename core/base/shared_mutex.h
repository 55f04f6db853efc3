#pragma once

#include <shared_mutex>

#include "core/base/thread_annotations.h"

namespace lockstep {

/// std::shared_mutex with the annotations that clang's thread-safety analysis needs. MutexLock
/// (core/base/mutex.h) takes it for writing.
class LS_CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() LS_ACQUIRE() { mutex_.lock(); }
  void unlock() LS_RELEASE() { mutex_.unlock(); }
  void lock_shared() LS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() LS_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

/// Holds a lock for reading while alive, as std::shared_lock does: what it guards must not be
/// changed.
class LS_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& lock) LS_ACQUIRE_SHARED(lock) : lock_(lock) {
    lock_.lock_shared();
  }
  ~SharedLock() LS_RELEASE() { lock_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& lock_;
};

}  // namespace lockstep
