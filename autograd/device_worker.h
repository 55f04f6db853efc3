#pragma once

#include <cstdint>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/function_ref.h"
#include "core/base/mutex.h"
#include "core/base/scoped_value.h"
#include "core/tensor/device.h"

namespace lockstep {

class GraphRun;

/// The thread that runs the backward nodes of one asynchronous device, for all backwards of the
/// process. Started on first use and never ended; it sleeps while it has no tasks. A child process
/// made by fork() starts its own. Thread-safe.
class DeviceWorker {
 public:
  /// Node `slot` of `run`, executed on the device's thread.
  struct Task {
    uint64_t sequence;
    GraphRun* run;
    uint32_t slot;
    friend bool operator<(const Task& a, const Task& b) { return a.sequence < b.sequence; }
  };

  static DeviceWorker& of(Device device);
  /// Returns the worker that runs on, or is replaced by, the calling thread; else null.
  static DeviceWorker* of_this_thread() noexcept;

  Device device() const noexcept { return device_; }
  /// Queues a task. The task with the highest sequence number runs first.
  void submit(Task task);
  /// Called on the worker's thread when it waits for a nested backward: runs tasks until `done()`,
  /// which is evaluated again after each `notify`.
  void run_until(FunctionRef<bool()> done);
  void notify();

  /// While alive, the calling thread acts as `worker`, which waits for it; null is allowed.
  class StandIn {
   public:
    explicit StandIn(DeviceWorker* worker) noexcept;

   private:
    ScopedValue<DeviceWorker*> worker_;
  };

 private:
  explicit DeviceWorker(Device device) : device_(device) {}

  Device device_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Task> tasks_ LS_GUARDED_BY(mutex_);  // a heap
  uint64_t notifications_ LS_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
