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

/// Operations on a device whose memory the cpu does not reach, done in copies on the cpu: what they
/// read is copied there on a stream, they begin when it has come, and what they wrote is copied
/// back on another stream. Many can be under way at once.
///
/// Thread-safe, but the order of `start` is that in which operations begin.
class Staging {
 public:
  /// Of rank `rank` of `size`. Throws DeviceError.
  Staging(Device device, int rank, int size);
  /// Waits for what is under way.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Operations on their way to the cpu.
  class Staged;
  /// Turns operations into ones on copies in the cpu's memory, and queues these behind the work of
  /// the current stream. `work` has the tensors, which are kept until it ends. Throws
  /// OutOfMemoryError, and DeviceError.
  std::shared_ptr<Staged> stage(std::vector<Operation>& operations,
                                std::shared_ptr<WorkState> work) const;
  /// Calls `begin` when the copies are there; it must not block, and ends the WorkState that it is
  /// given unless it throws. Then the results are queued on their way back, and `work` ends,
  /// its event behind them.
  void start(std::shared_ptr<Staged> staged, std::function<void(std::shared_ptr<WorkState>)> begin);

 private:
  void stage(Operation& operation, Staged& staged) const;
  using Queue = std::deque<std::shared_ptr<Staged>>;
  /// The next of a queue; null when it is empty and no more will come.
  std::shared_ptr<Staged> next(Queue& queue, const bool& no_more);
  void begin_all();
  void finish_all();
  void finish(Staged& staged) const;

  const Device device_;
  const int rank_;
  const int size_;
  const OwnedStream to_cpu_;
  const OwnedStream from_cpu_;

  std::mutex lock_;  // of what follows
  std::condition_variable changed_;
  Queue copied_;  ///< until their copies are there
  Queue begun_;   ///< until their results are on their way
  bool no_more_copied_ = false;
  bool no_more_begun_ = false;

  // Two, since operations that were begun first may wait for later ones.
  ServiceThread beginner_;
  ServiceThread finisher_;
};

}  // namespace lockstep::dist
