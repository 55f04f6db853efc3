#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/scoped_value.h"
#include "core/base/function_ref.h"
#include "core/tensor/device.h"

namespace lockstep {

class GraphRun;

/// The thread that runs backward's nodes of one asynchronous device, for all backwards of the
/// process. Started when first wanted, never ended: it sleeps while there is nothing to do. A child
/// made by fork() starts its own. Thread-safe.
class DeviceWorker {
 public:
  /// Node `slot` of `run`, to be run by the device's thread.
  struct Task {
    uint64_t sequence;
    GraphRun* run;
    uint32_t slot;
    friend bool operator<(const Task& a, const Task& b) { return a.sequence < b.sequence; }
  };

  static DeviceWorker& of(Device device);
  /// The worker whose thread this is, or that this thread stands in for; else null.
  static DeviceWorker* of_this_thread() noexcept;

  Device device() const noexcept { return device_; }
  /// The highest sequence number goes first.
  void submit(Task task);
  /// On the worker's own thread, which waits for a backward of its own: runs tasks meanwhile, until
  /// `done()`, which is asked again after each `notify`.
  void run_until(FunctionRef<bool()> done);
  void notify();

  /// While alive, the calling thread stands in for `worker`, which waits for it; null is allowed.
  class StandIn {
   public:
    explicit StandIn(DeviceWorker* worker) noexcept;

   private:
    ScopedValue<DeviceWorker*> worker_;
  };

 private:
  explicit DeviceWorker(Device device) : device_(device) {}

  Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;     // guarded by mutex_; a heap
  uint64_t notifications_ = 0;  // guarded by mutex_
};

}  // namespace lockstep
