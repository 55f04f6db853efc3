#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dist/ddp/overlap.h"
#include "dist/ddp/reducer.h"
#include "dist/group/process_group.h"
#include "train/report/overlap_chart.h"
#include "train/report/step_overlap.h"

namespace lockstep::train {

/// How much of the communication of a step hides behind its computation, and why the rest does not.
struct OverlapReport {
  std::string name;  ///< of the config
  int ranks = 0;
  int64_t steps = 0;          ///< that the figures are medians of
  StepOverlap own;            ///< of this rank; rank 0 reports
  StepOverlap latest;         ///< of all ranks
  std::vector<double> alone;  ///< by bucket: seconds of its transfer alone
  /// Where `alone` is from: measured without computation, or estimated.
  std::string alone_from;
  std::string sizes;  ///< of the buckets, and where they are from
  /// More for the JSON object: names and values.
  std::vector<std::pair<std::string, double>> more;

  int64_t bytes() const;
  /// By bucket, of this rank.
  std::vector<dist::Exposure> causes() const;
  /// By bucket: seconds by which it prolonged the wait after backward, behind the buckets before.
  std::vector<double> added_waits() const;
};

/// "chosen: 7 buckets of up to 2.5 MiB, ...", or that the config has them.
std::string sizes_of_buckets(const dist::Reducer& reducer);

/// By all ranks together, each with its own steps, of which all have as many. What transfers take
/// alone cannot be known from a run: for each bucket the fastest is taken, counted from when it had
/// been handed over on all ranks and the bucket before it had come.
OverlapReport overlap_report(dist::ProcessGroup& group, std::span<const StepOverlap> steps,
                             std::string name);

/// Two lines for the terminal.
std::vector<std::string> overlap_summary(const OverlapReport& report);
/// For overlap_chart.
OverlapTimeline overlap_timeline(const OverlapReport& report);
/// One object: config, ranks, steps, gradient_bytes, `more`, step_ms and exposed_comm_ms of the
/// slowest rank, sizes, alone_from, and this rank's buckets: bytes, ready_ms, all_ready_ms (on the
/// last rank), launched_ms, done_ms, alone_ms, exposed_ms, cause.
std::string overlap_json(const OverlapReport& report);

}  // namespace lockstep::train
