#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "core/base/call_stack.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/ref.h"
#include "core/base/spin_lock.h"
#include "core/device/queued_kernel.h"
#include "core/tensor/stream.h"
#include "kernels/host/kernel_gate.h"

namespace lockstep::host {

class HostStream;

/// A position in a stream: after its first `sequence` tasks.
struct Mark {
  Ref<HostStream> stream;
  uint64_t sequence = 0;
};
/// Time at which a stream reached a mark, in nanoseconds of the steady clock; 0 before.
struct MarkTime : RefCounted {
  std::atomic<int64_t> nanoseconds = 0;
};

// Kinds of tasks.
struct KernelTask {
  std::unique_ptr<QueuedKernel> kernel;
  std::string module;                ///< module that queued it; "" outside modules
  std::unique_ptr<CallStack> stack;  ///< null unless call stacks are recorded
  bool fails = false;                ///< a HostFaultGuard makes it fail
  uint64_t launch = 0;               ///< number of its launch in a profile; 0: not recorded
};
struct CopyTask {
  void* to;
  const void* from;
  size_t bytes;
  double least_seconds;
  bool fails;
};
struct WaitTask {
  Mark mark;
};
struct TimeTask {
  Ref<MarkTime> time;
};
struct CallbackTask {
  std::function<void()> call;
};
struct StopTask {};
using Task =
    std::variant<std::monostate, KernelTask, CopyTask, WaitTask, TimeTask, CallbackTask, StopTask>;

/// A queue of tasks and the thread that runs them in order; the first task starts it. Tasks are
/// numbered from 1; a task is done only when all tasks before it are done. Thread-safe.
///
/// The thread starts with default thread state, blocks all signals but its own faults, and polls
/// for a while before it sleeps (core/base/adaptive_wait.h). It is never joined: it ends after
/// `stop`, and halts where it is when the process ends.
class HostStream : public RefCounted {
 public:
  /// `gate` must outlive it.
  HostStream(const Stream& name, int priority, KernelGate& gate);
  ~HostStream();

  const Stream& name() const { return name_; }
  int priority() const { return priority_; }

  /// Queues a task and returns its number. Throws DeviceError after `stop`, and if the system
  /// cannot start the thread.
  uint64_t push(Task task);
  /// Closes the queue: later pushes throw, and the thread ends after the last task.
  void stop();
  /// Number of the last task.
  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  /// Whether the first `sequence` tasks are done.
  bool reached(uint64_t sequence) const;
  /// Blocks until the first `sequence` tasks are done.
  void wait(uint64_t sequence);
  /// Returns and clears the first error of a task, if that task's number is at most `sequence`.
  std::exception_ptr take_error(uint64_t sequence = ~uint64_t{0});

  /// In a child made by fork(), which has no worker: counts all tasks as done.
  void reset_after_fork() { done_.store(~uint64_t{0}); }
  /// Whether the worker is running a task (waiting for a mark does not count); see `end_all`.
  bool is_running() const { return running_.load(); }
  /// Call when the process ends: workers start no more tasks, and all waits return.
  static void end_all();

 private:
  struct Chunk;

  void start();
  void check_open() const LS_REQUIRES(queue_lock_);
  static void* main(void* self);
  void work();
  /// Runs a task; returns false after a StopTask.
  bool run(Task& task, uint64_t sequence);
  void run(KernelTask& task);
  void run(const CopyTask& task);
  void keep_error(uint64_t sequence, const std::string& note);
  void publish(uint64_t sequence);

  const Stream name_;
  const int priority_;
  KernelGate& gate_;

  // The queue: chunks are written under queue_lock_; the worker reads up to submitted_.
  SpinLock queue_lock_;
  Chunk* tail_ LS_GUARDED_BY(queue_lock_);
  size_t tail_used_ LS_GUARDED_BY(queue_lock_) = 0;
  bool stopped_ LS_GUARDED_BY(queue_lock_) = false;
  std::atomic<uint64_t> submitted_ = 0;
  std::atomic<Chunk*> spare_ = nullptr;  ///< emptied by the worker, reused by push
  Chunk* head_;                          ///< read by the worker only

  std::atomic<bool> started_ = false;
  std::atomic<uint32_t> asleep_ = 0;
  std::atomic<bool> running_ = false;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<int> waiters_ = 0;

  Mutex mutex_;  // held to start the thread, too
  CondVar reached_;
  std::exception_ptr error_ LS_GUARDED_BY(mutex_);
  uint64_t error_sequence_ LS_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> has_error_ = false;
};

}  // namespace lockstep::host
