#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/tensor/event.h"

namespace lockstep::dist {

struct WorkState;

/// Handle to an asynchronous operation of a ProcessGroup. Copies refer to the same operation, which
/// continues if all of them are destroyed. Thread-safe.
class Work {
 public:
  /// An empty handle, which counts as done.
  Work() = default;
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  /// Makes later work see the results. For tensors on the cpu it blocks until the operation is done
  /// on this rank. For tensors on a device with streams, later work on the current stream waits and
  /// the caller does not, unless the operation runs in the cpu's memory. Throws the operation's
  /// error if it is known by then.
  void wait() const;
  /// Blocks until the operation is done on this rank, on any device. Throws its error.
  void synchronize() const;
  /// Whether it is done or failed. Never blocks.
  bool is_completed() const;
  /// Returns when it ended on this rank, as seen by the communication thread. The clock's epoch for
  /// an empty handle and for an operation that has not ended.
  std::chrono::steady_clock::time_point ended_at() const;
  /// Returns the milliseconds of device time from `start`, which must have been recorded with
  /// timing on the tensors' device, to the results, and blocks until they are there. nullopt for an
  /// empty handle, a failed operation, or tensors that are not on a device with streams.
  std::optional<double> ms_after(const Event& start) const;

 private:
  std::shared_ptr<WorkState> state_;
};

}  // namespace lockstep::dist
