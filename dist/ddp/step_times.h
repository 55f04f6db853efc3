#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dist/ddp/overlap.h"
#include "dist/ddp/step_clock.h"
#include "dist/group/work.h"

namespace lockstep::dist {

/// When one step of a Reducer, and its buckets, were where. Where the parameters are on a device
/// with streams, its times count (dist/ddp/step_clock.h), and whoever asks blocks until it has come
/// that far; so a step's times can be taken from the reducer and read while it runs the next. Not
/// thread-safe.
class StepTimes {
 public:
  using TimePoint = BucketTimes::TimePoint;

  /// A bucket on its way to other ranks.
  struct Sent {
    int64_t bytes = 0;
    StepClock::Mark ready;
    StepClock::Mark launched;
    Work work;
  };

  /// `device`: as StepClock takes it.
  explicit StepTimes(Device device) noexcept : clock_(device) {}

  TimePoint begun() const { return clock_.begun(); }
  /// When `finish` was called, or the device was as far.
  TimePoint backward_ended() const { return clock_.time(backward_ended_); }
  /// How long communication that backward had not hidden held up the step, in seconds: how long
  /// `finish` waited, or, on a device with streams, by how much the last sum came after the end of
  /// backward.
  double exposed_seconds() const;
  /// In the order of the plan.
  std::vector<BucketTimes> buckets() const;

 private:
  friend class Reducer;

  void begin(size_t buckets);
  void set(StepClock::Mark& mark) const { clock_.set(mark); }

  StepClock clock_;
  StepClock::Mark backward_ended_;
  double waited_seconds_ = 0;  ///< in `finish`
  std::vector<Sent> sent_;
};

}  // namespace lockstep::dist
