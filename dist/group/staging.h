#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "core/tensor/stream.h"
#include "dist/collectives/operation.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {

/// Runs operations on a device whose memory the cpu cannot access through copies on the cpu: inputs
/// are copied there on one stream, the operations begin when the copies are complete, and results
/// are copied back on another stream. Many can be in flight at once.
///
/// Thread-safe, but the order of `start` is that in which operations begin.
class Staging {
 public:
  /// For rank `rank` of `size`. Throws DeviceError.
  Staging(Device device, int rank, int size);
  /// Waits for operations in flight.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Operations of one call with their copies.
  class Staged;
  /// Makes `operations` use copies in the cpu's memory and queues the copying of inputs behind the
  /// work of the current stream. `work` holds the tensors, which are kept until it ends. Throws
  /// OutOfMemoryError and DeviceError.
  std::shared_ptr<Staged> stage(std::vector<Operation>& operations,
                                std::shared_ptr<WorkState> work) const;
  /// Calls `begin` when the copies are complete; it must not block, and must finish the WorkState
  /// passed to it unless it throws. Then the results are queued to be copied back, and `work` is
  /// finished with an event behind these copies.
  void start(std::shared_ptr<Staged> staged, std::function<void(std::shared_ptr<WorkState>)> begin);

 private:
  /// Hands operations from one thread to another. Thread-safe.
  class Queue {
   public:
    void push(std::shared_ptr<Staged> staged);
    /// Announces that nothing more will be pushed.
    void close();
    /// Waits for the next element; null if there is none and the queue is closed.
    std::shared_ptr<Staged> next();

   private:
    Mutex lock_;
    CondVar changed_;
    std::deque<std::shared_ptr<Staged>> waiting_ LS_GUARDED_BY(lock_);
    bool closed_ LS_GUARDED_BY(lock_) = false;
  };

  void stage(Operation& operation, Staged& staged) const;
  void begin_all();
  void finish_all();
  void finish(Staged& staged) const;

  const Device device_;
  const int rank_;
  const int size_;
  const OwnedStream to_cpu_;
  const OwnedStream from_cpu_;

  Queue copied_;  ///< waiting for their input copies
  Queue begun_;   ///< waiting for their operations to end

  // Two threads, because operations that began earlier may depend on later ones.
  ServiceThread beginner_;
  ServiceThread finisher_;
};

}  // namespace lockstep::dist
