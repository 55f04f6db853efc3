#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

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
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // All members below are guarded by mutex_.
  std::deque<std::function<void()>> tasks_;
  uint64_t submitted_ = 0;
  uint64_t done_ = 0;
  bool ends_ = false;
  std::exception_ptr error_;
  uint64_t error_number_ = 0;
  std::thread thread_;
};

}  // namespace worker
