#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::train {

/// Percentiles of step times in memory that does not grow with the number of steps: counts in
/// buckets 0.5 % wide, from 1 microsecond to 12 days.
class StepDurations {
 public:
  void add(double milliseconds);
  int64_t count() const { return count_; }
  /// The time that `percent` of the steps did not exceed (nearest rank), accurate to 0.25 %;
  /// minimum and maximum are exact. 0 before the first step.
  double percentile(double percent) const;

 private:
  static constexpr size_t kBuckets = 5600;
  std::array<int64_t, kBuckets> buckets_{};
  int64_t count_ = 0;
  double least_ = 0;
  double most_ = 0;
};

}  // namespace lockstep::train
