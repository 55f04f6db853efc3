#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"

namespace worker {

/// A queue of tasks and the thread that runs them in order. Tasks are numbered from 1. An exception
/// of a task is kept, and later tasks still run. Thread-safe.
class WorkerStream {
 public:
  explicit WorkerStream(int priority) : priority_(priority) {}
  /// Runs what is queued, then ends the thread. Must not be called by the thread itself.
  ~WorkerStream();
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;

  int priority() const { return priority_; }

  /// Queues a task and returns its number. The first call starts the thread.
  uint64_t push(std::function<void()> task);
  /// Number of the last task that was queued.
  uint64_t submitted() const;
  /// Whether the first `count` tasks are done. Never blocks for long.
  bool reached(uint64_t count) const;
  /// Blocks until the first `count` tasks are done.
  void wait(uint64_t count) const;
  /// Throws the kept exception if its task is among the first `count`; it is thrown once.
  void throw_error(uint64_t count);

 private:
  void work();

  const int priority_;
  // The annotations are optional: with them clang's -Wthread-safety checks that each member is used
  // under the lock.
  mutable lockstep::Mutex mutex_;
  mutable lockstep::CondVar changed_;
  std::deque<std::function<void()>> tasks_ LS_GUARDED_BY(mutex_);
  uint64_t submitted_ LS_GUARDED_BY(mutex_) = 0;
  uint64_t done_ LS_GUARDED_BY(mutex_) = 0;
  bool ends_ LS_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ LS_GUARDED_BY(mutex_);
  uint64_t error_number_ LS_GUARDED_BY(mutex_) = 0;
  std::thread thread_ LS_GUARDED_BY(mutex_);
};

}  // namespace worker
