#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/ddp/bucket_choice.h"

namespace lockstep::dist {

/// Measures what a Reducer's bucket sizes are chosen from: when gradients are ready, over two steps
/// in which nothing is sent while backward runs, and the link. Not thread-safe.
class BucketTuner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  bool is_measuring() const { return measured_steps_ < kSteps; }
  /// Forgets a step that was not ended.
  void begin_step(size_t parameters) { arrived_.assign(parameters, {}); }
  /// A gradient is there; of several times in a step the last one counts.
  void arrived(uint32_t parameter) { arrived_[parameter] = std::chrono::steady_clock::now(); }
  /// Of two steps, each gradient's earlier time counts: what disturbs one makes it later.
  void end_step(TimePoint backward_end);

  /// Measures the link and chooses; by all ranks together, after the last step. Each time is that
  /// of the rank where it is longest, and the choice is rank 0's, so that all have one. Arguments
  /// as of `choose_limits` and `measure_link`.
  BucketChoice choose(ProcessGroup& group, std::span<const PlannedParameter> parameters,
                      std::span<const uint32_t> order, const BucketLimits& wanted, int64_t rows,
                      const StartReduction& start) const;

 private:
  static constexpr int kSteps = 2;

  std::vector<TimePoint> arrived_;  ///< by parameter, in this step
  GradientTimes times_;             ///< after the first gradient of all
  int measured_steps_ = 0;
};

}  // namespace lockstep::dist
