#pragma once

#include <chrono>

#include "core/tensor/event.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// Times of events in a step of one rank: on the clock of this process or, for work on a device
/// with streams, when the device reaches them. Both clocks are aligned at the step's beginning;
/// earlier work that the device has still to finish is not part of the step. Not thread-safe.
class StepClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A point in time; may be set again in the next step.
  class Mark {
   public:
    /// Returns when it was set, on the clock of this process; the clock's epoch before.
    TimePoint queued() const noexcept { return queued_; }

   private:
    friend class StepClock;

    TimePoint queued_;
    Event reached_{/*timing=*/true};
  };

  /// `device`: the device of the step's work; `cpu` for several devices, whose times are then those
  /// of queueing.
  explicit StepClock(Device device) noexcept : device_(device) {}

  /// Whether times are those of a device with streams.
  bool is_device() const noexcept { return is_asynchronous(device_.type); }
  void begin() { set(begun_); }
  TimePoint begun() const noexcept { return begun_.queued(); }
  /// Sets the mark to now, or to the end of the work queued so far on this thread's current stream.
  void set(Mark& mark) const;
  /// Returns the time of the mark; blocks until the device has reached it.
  TimePoint time(const Mark& mark) const;
  /// Returns when an operation on the device's tensors ended on this rank, and blocks until then;
  /// at least the time of `launched`, which is also the result for an empty `work`.
  TimePoint end(const Work& work, const Mark& launched) const;

 private:
  TimePoint after_beginning(double ms) const;

  Device device_;
  Mark begun_;
};

}  // namespace lockstep::dist
