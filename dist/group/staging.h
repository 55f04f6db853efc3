#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

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
  void stage(Operation& operation, Staged& staged) const;
  using Queue = std::deque<std::shared_ptr<Staged>>;
  /// Waits for the next element of a queue; null if it is empty and no more will come.
  std::shared_ptr<Staged> next(Queue& queue, const bool& no_more);
  void begin_all();
  void finish_all();
  void finish(Staged& staged) const;

  const Device device_;
  const int rank_;
  const int size_;
  const OwnedStream to_cpu_;
  const OwnedStream from_cpu_;

  std::mutex lock_;  // guards the members below
  std::condition_variable changed_;
  Queue copied_;  ///< waiting for their input copies
  Queue begun_;   ///< waiting for their operations to end
  bool no_more_copied_ = false;
  bool no_more_begun_ = false;

  // Two threads, because operations that began earlier may depend on later ones.
  ServiceThread beginner_;
  ServiceThread finisher_;
};

}  // namespace lockstep::dist
