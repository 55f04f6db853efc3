#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/ddp/bucket_choice.h"

namespace lockstep::dist {

/// Measures the times of gradients and the link, from which a Reducer's bucket sizes are chosen.
/// Gradients are timed over two steps in which nothing is sent while backward runs. Not
/// thread-safe.
class BucketTuner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `device`: that of the gradients.
  explicit BucketTuner(Device device = kCPU) : device_(device) {}

  bool is_measuring() const { return measured_steps_ < kSteps; }
  /// Starts a step, discarding one for which `end_step` was not called.
  void begin_step(size_t parameters) { arrived_.assign(parameters, {}); }
  /// Records that a gradient is ready; of several calls in a step the last one counts.
  void arrived(uint32_t parameter, TimePoint at) { arrived_[parameter] = at; }
  /// Ends a step. Keeps the earlier time of each gradient: disturbances only make it later.
  void end_step(TimePoint backward_end);
  /// The earliest times of the measured steps so far.
  const GradientTimes& times() const { return times_; }

  /// Measures the link and chooses limits; collective, called after the last measured step. Each
  /// time is the largest over all ranks, and all ranks take rank 0's choice. For the arguments see
  /// `choose_limits` and `measure_link`.
  BucketChoice choose(ProcessGroup& group, std::span<const PlannedParameter> parameters,
                      std::span<const uint32_t> order, const BucketLimits& wanted, int64_t rows,
                      const StartReduction& start) const;

 private:
  static constexpr int kSteps = 2;

  Device device_;
  std::vector<TimePoint> arrived_;  ///< by parameter, in this step
  GradientTimes times_;             ///< earliest of the steps so far
  int measured_steps_ = 0;
};

}  // namespace lockstep::dist
