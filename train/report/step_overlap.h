#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "dist/ddp/step_times.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

/// When one rank computed in a step, and when its buckets of gradients were where: seconds after
/// the step's beginning, which ranks agree on up to the time of a message, as none begins before it
/// is told to (train/replicas.h). Clocks of hosts are not compared.
struct StepOverlap {
  double seconds = 0;
  double backward_end = 0;
  double exposed = 0;  ///< waited for communication after backward
  // By bucket, in the order of the plan.
  std::vector<int64_t> bytes;
  std::vector<double> ready, launched, done;
};

/// Of an even number the upper of the two in the middle; at least one value.
double median(std::vector<double> values);

/// Of a step that took `seconds`.
StepOverlap overlap_of_step(const dist::StepTimes& times, double seconds);

/// The median of every figure by itself. At least one step, all of the same buckets.
StepOverlap median_step(std::span<const StepOverlap> steps);

/// Of every figure the latest of all ranks, which all call it.
StepOverlap latest_of_ranks(dist::ProcessGroup& group, StepOverlap step);

/// The newest steps of a run. Not thread-safe.
class RecentOverlap {
 public:
  static constexpr size_t kSteps = 50;
  /// Forgets the steps before where buckets have become others.
  void add(StepOverlap step);
  /// At most kSteps, the newest last.
  std::vector<StepOverlap> steps() const { return {steps_.begin(), steps_.end()}; }

 private:
  std::deque<StepOverlap> steps_;
};

}  // namespace lockstep::train
