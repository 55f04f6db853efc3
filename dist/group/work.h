#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/tensor/event.h"

namespace lockstep::dist {

struct WorkState;

/// An operation of a ProcessGroup under way. A handle: copies are of the same operation, which goes
/// on when they are gone. Thread-safe.
class Work {
 public:
  /// Of nothing: done.
  Work() = default;
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  /// Makes what comes next see the results. For tensors of the cpu: blocks until the operation is
  /// done on this rank. For tensors of a device with streams: later work on the current stream
  /// waits, the caller does not, unless the operation is done in the cpu's memory. Throws what the
  /// operation failed with, if that is known.
  void wait() const;
  /// Blocks until the operation is done on this rank, whatever the device. Throws its failure.
  void synchronize() const;
  /// Whether it is done or failed. Never blocks.
  bool is_completed() const;
  /// When it ended on this rank, as the communication thread saw it. The clock's zero where it has
  /// not, or was nothing.
  std::chrono::steady_clock::time_point ended_at() const;
  /// Milliseconds of device time from `start`, which was recorded with timing on the device of the
  /// tensors, until the results were there, for which it blocks. Nothing where the operation was
  /// one of nothing, failed, or had no tensors of a device with streams.
  std::optional<double> ms_after(const Event& start) const;

 private:
  std::shared_ptr<WorkState> state_;
};

}  // namespace lockstep::dist
