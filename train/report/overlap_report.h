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

/// How much of a step's communication overlaps with its computation, and why the rest does not.
struct OverlapReport {
  std::string name;  ///< the config's name
  int ranks = 0;
  int64_t steps = 0;          ///< number of steps; all times are medians over them
  StepOverlap own;            ///< times of this rank; rank 0 reports
  StepOverlap latest;         ///< each time's maximum over all ranks
  std::vector<double> alone;  ///< by bucket: seconds that its transfer alone takes
  /// Source of `alone`: measured without computation, or estimated.
  std::string alone_from;
  std::string sizes;  ///< bucket sizes and whether they were chosen or configured
  // Of a sharded model: paths of the modules of its units, empty for the root, and the bytes of
  // their parameters; and by bucket the index of its unit.
  std::vector<std::string> units;
  std::vector<int64_t> unit_bytes;
  std::vector<uint32_t> unit_of_bucket;
  /// Additional members of the JSON object.
  std::vector<std::pair<std::string, double>> more;

  int64_t bytes() const;
  /// By bucket: why this rank waited for it.
  std::vector<dist::Exposure> causes() const;
  /// By bucket: seconds that it added to the wait after backward, beyond the buckets before it.
  std::vector<double> added_waits() const;
};

/// Adds the units of a sharded model to a report of its steps.
void add_units(OverlapReport& report, const dist::ShardedModel& sharded);

/// Returns "chosen: 7 buckets of up to 2.5 MiB, ..." or "7 buckets of sizes as configured".
std::string sizes_of_buckets(const dist::Reducer& reducer);

/// Collective: each rank passes its own steps, the same number on all. A run cannot measure how
/// long a bucket's transfer alone takes; it is estimated by the fastest of these steps, counted
/// from the time when all ranks had launched it and the previous bucket was done.
OverlapReport overlap_report(dist::ProcessGroup& group, std::span<const StepOverlap> steps,
                             std::string name);

/// Summary for the terminal, at most two lines.
std::vector<std::string> overlap_summary(const OverlapReport& report);
/// The data of `report` for overlap_chart.
OverlapTimeline overlap_timeline(const OverlapReport& report);
/// The report as one JSON object: config, ranks, steps, gradient_bytes, `more`, step_ms and
/// exposed_comm_ms of the slowest rank, sizes, alone_from, and this rank's buckets: bytes,
/// ready_ms, all_ready_ms (on the last rank), launched_ms, done_ms, alone_ms, exposed_ms, cause. Of
/// a sharded model also the unit of each bucket, gather_wait_ms of the slowest rank, and "gathers"
/// by unit: unit, bytes, exposed_ms (how long this rank waited for its parameters), cause.
std::string overlap_json(const OverlapReport& report);

}  // namespace lockstep::train
