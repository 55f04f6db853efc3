#pragma once

#include <chrono>

#include "core/tensor/event.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// When things happen in a step of one rank: on the clock of this process, or, where the work is on
/// a device with streams, when the device comes there. The device's beginning of a step counts as
/// the process's; what it was still busy with then is not part of the step. Not thread-safe.
class StepClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A moment; may be set again in the next step.
  class Mark {
   public:
    /// When it was set, or what the device was to come to was queued; the clock's zero before.
    TimePoint queued() const noexcept { return queued_; }

   private:
    friend class StepClock;

    TimePoint queued_;
    Event reached_{/*timing=*/true};
  };

  /// `device`: where the step's work is; `cpu` where it is on several, whose times are then those
  /// of queueing.
  explicit StepClock(Device device) noexcept : device_(device) {}

  /// Whether times are a device's.
  bool is_device() const noexcept { return is_asynchronous(device_.type); }
  void begin() { set(begun_); }
  TimePoint begun() const noexcept { return begun_.queued(); }
  /// To now, or to when the work queued so far on this thread's current stream is done.
  void set(Mark& mark) const;
  /// Blocks until the device has come there.
  TimePoint time(const Mark& mark) const;
  /// When an operation on the device's tensors ended on this rank, for which this blocks; not
  /// before `launched`, which is the answer for an operation of nothing.
  TimePoint end(const Work& work, const Mark& launched) const;

 private:
  TimePoint after_beginning(double ms) const;

  Device device_;
  Mark begun_;
};

}  // namespace lockstep::dist
