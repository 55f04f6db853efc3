#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
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

  /// `device`: as StepClock takes it.
  explicit StepTimes(Device device) noexcept : clock_(device) {}

  // What happens, told by the reducer in the order of the step; "now" is what StepClock::set takes.

  /// A step of so many buckets begins now.
  void step_begun(size_t buckets);
  /// A gradient of a parameter is there now; of several in a step the last one counts. Only told in
  /// steps in which nothing is sent while backward runs.
  void gradient_ready(uint32_t parameter);
  /// The gradients of a bucket, and the buckets before it, are there now.
  void bucket_ready(size_t bucket, int64_t bytes);
  /// The reduction of a bucket is handed over now.
  void bucket_launched(size_t bucket);
  /// What was handed over. A Work of nothing ends when it is launched.
  void bucket_under_way(size_t bucket, Work reduction);
  /// `finish` is called, or the device's work before it ends, now.
  void backward_done() { clock_.set(backward_ended_); }
  /// All buckets are reduced now. `elsewhere`: the part of the time since `backward_done` in which
  /// nobody waited for them.
  void all_reduced(std::chrono::steady_clock::duration elsewhere);

  // What happened.

  size_t bucket_count() const { return sent_.size(); }
  /// The reduction of a bucket that is under way.
  Work& reduction(size_t bucket) { return sent_[bucket].work; }
  TimePoint begun() const { return clock_.begun(); }
  /// Time at which `finish` was called, or at which the device reached that point.
  TimePoint backward_ended() const { return clock_.time(backward_ended_); }
  /// Time at which `finish` was called, on the clock of this process.
  TimePoint finish_called() const { return backward_ended_.queued(); }
  /// Time at which the parameter's gradient was there; nullopt if that was not told in this step.
  std::optional<TimePoint> gradient_time(uint32_t parameter) const;
  /// How long communication that backward had not hidden held up the step, in seconds: how long
  /// `finish` waited, or, on a device with streams, by how much the last sum came after the end of
  /// backward.
  double exposed_seconds() const;
  /// Times of the buckets, in the order of the plan.
  std::vector<BucketTimes> buckets() const;

 private:
  /// A bucket on its way to other ranks.
  struct Sent {
    int64_t bytes = 0;
    StepClock::Mark ready;
    StepClock::Mark launched;
    Work work;
  };

  struct Gradient {
    StepClock::Mark ready;
    bool is_told = false;
  };

  StepClock clock_;
  StepClock::Mark backward_ended_;
  double waited_seconds_ = 0;  ///< how long `finish` waited
  std::vector<Sent> sent_;
  std::vector<Gradient> gradients_;  ///< by parameter; empty if none was told
};

}  // namespace lockstep::dist
