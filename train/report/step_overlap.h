#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "dist/ddp/step_times.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

/// Times of one rank in a step: end of backward, and when each bucket of gradients was ready,
/// launched and done. All are seconds since the step's beginning, which is the same on all ranks up
/// to the latency of a message, as the leader announces each step (train/run/replicas.h). Clocks of
/// hosts are not compared.
struct StepOverlap {
  double seconds = 0;
  double backward_end = 0;
  double exposed = 0;  ///< time spent waiting for communication after backward
  // By bucket, in the order of the plan.
  std::vector<int64_t> bytes;
  std::vector<double> ready, launched, done;
  // By unit of a sharded model: seconds of waiting for its parameters, in all and for gathers that
  // were begun when they were needed. Empty otherwise.
  std::vector<double> gather_wait, gather_late;

  /// Time spent waiting for parameters, of all units.
  double gathers() const;
};

/// The median; for an even number of values the upper of the two middle ones. Needs at least one.
double median(std::vector<double> values);

/// The times of a step that took `seconds`.
StepOverlap overlap_of_step(const dist::StepTimes& times, double seconds);

/// Returns the same with the waiting for parameters.
StepOverlap overlap_of_step(const dist::StepTimes& times, double seconds,
                            std::span<const dist::GatherWait> waits);

/// The median of each time separately. Needs at least one step; all must have the same buckets.
StepOverlap median_step(std::span<const StepOverlap> steps);

/// The maximum of each time over all ranks. Collective.
StepOverlap latest_of_ranks(dist::ProcessGroup& group, StepOverlap step);

/// The newest steps of a run. Not thread-safe.
class RecentOverlap {
 public:
  static constexpr size_t kSteps = 50;
  /// Adds a step. Drops all earlier ones if their buckets differ from its buckets.
  void add(StepOverlap step);
  /// At most kSteps, the newest last.
  std::vector<StepOverlap> steps() const { return {steps_.begin(), steps_.end()}; }

 private:
  std::deque<StepOverlap> steps_;
};

}  // namespace lockstep::train
