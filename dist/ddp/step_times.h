#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dist/ddp/overlap.h"
#include "dist/ddp/step_clock.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// Times of one step of a Reducer: when each bucket was ready, launched and reduced. For parameters
/// on a device with streams these are device times (dist/ddp/step_clock.h), and the getters block
/// until the device has got that far; so a step's times can be taken from the reducer and read
/// while it runs the next one. Not thread-safe.
class StepTimes {
 public:
  using TimePoint = BucketTimes::TimePoint;

  /// A bucket that was sent.
  struct Sent {
    int64_t bytes = 0;
    StepClock::Mark ready;
    StepClock::Mark launched;
    Work work;
  };

  /// `device`: see StepClock.
  explicit StepTimes(Device device) noexcept : clock_(device) {}

  TimePoint begun() const { return clock_.begun(); }
  /// When `finish` was called, or when the device reached that point.
  TimePoint backward_ended() const { return clock_.time(backward_ended_); }
  /// Seconds of communication that were not hidden behind backward: how long `finish` waited or, on
  /// a device with streams, from the end of backward to the last sum.
  double exposed_seconds() const;
  /// Times of the buckets, in the order of the plan.
  std::vector<BucketTimes> buckets() const;

 private:
  friend class Reducer;

  void begin(size_t buckets);
  void set(StepClock::Mark& mark) const { clock_.set(mark); }

  StepClock clock_;
  StepClock::Mark backward_ended_;
  double waited_seconds_ = 0;  ///< how long `finish` waited
  std::vector<Sent> sent_;
};

}  // namespace lockstep::dist
