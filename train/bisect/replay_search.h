#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/bisect/bisect.h"
#include "train/bisect/operator_trace.h"
#include "train/bisect/replay.h"
#include "train/bisect/tolerance.h"

namespace lockstep::train {

/// Replays two runs beside each other up to the first call in which they differ, and writes what it
/// finds into a Bisection, which must outlive it like the runs.
class ReplaySearch {
 public:
  /// Throws what building the replays throws, ConfigError for micro-batches of other sizes and
  /// DataError for other data.
  ReplaySearch(const RecordedRun& a, const RecordedRun& b, const ReplayOptions& options,
               Bisection& result);

  /// Replays up to step `last`, from 1, from the newest common state, or the first.
  void run(int64_t last, bool from_the_beginning);
  /// Replays up to step `last` with numbers that may differ by `tolerance`.
  void run_within(double tolerance, int64_t last, bool from_the_beginning);

 private:
  void go_to_common_state(int64_t last);
  void step();
  /// The parts of a step by rank.
  using TracedStep = std::vector<std::vector<TracedPart>>;
  TracedStep traced(Replay& replay, const RecordedRun& run);
  /// The first call of a rank in which the runs differ.
  struct RankDifference {
    size_t rank = 0;
    CallPlace place;
    StepPart part;
    std::vector<std::string> inputs;  ///< arguments that differ
    std::optional<ElementDifference> element;
    bool begins_there = false;  ///< its inputs are the same in both
  };
  void compute_again(std::vector<RankDifference>& differences);
  void describe_difference(const RankDifference& difference, const std::vector<TracedPart>& of_a,
                           const std::vector<TracedPart>& of_b);
  void compare_with_record(const StepResult& step, const RecordedRun& run);
  void step_within(double tolerance);
  void describe_beyond(const BeyondTolerance& beyond);
  void add_place(OperatorDifference& found) const;

  const RecordedRun& run_a_;
  const RecordedRun& run_b_;
  Replay a_;
  Replay b_;
  Bisection& result_;
};

}  // namespace lockstep::train
