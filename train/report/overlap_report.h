#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/overlap.h"
#include "dist/ddp/reducer.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/group/process_group.h"
#include "train/report/overlap_chart.h"
#include "train/report/step_overlap.h"

namespace lockstep::train {

/// How much of a step's communication overlaps with its computation, and why the rest does not. All
/// times are those of one step on one rank, so that they add up: of the steps given, the one with
/// the median duration, and in it the rank that took longest.
struct OverlapReport {
  std::string name;  ///< the config's name
  int ranks = 0;
  int64_t steps = 0;  ///< number of steps among which `step` is the median
  int rank = 0;       ///< the slowest rank, whose times these are
  StepOverlap step;
  // By bucket, in the order of the plan.
  std::vector<double> all_ready;  ///< when it was ready on every rank, in seconds as in `step`
  std::vector<int> last_rank;     ///< the rank on which it was ready last
  /// Seconds that its transfer alone takes; nothing where that was not measured.
  std::vector<std::optional<double>> alone;
  std::vector<dist::BucketContent> contents;  ///< empty if not known

  // Of a sharded model: paths of the modules of its units, empty for the root, and the bytes of
  // their parameters; and by bucket the index of its unit.
  std::vector<std::string> units;
  std::vector<int64_t> unit_bytes;
  std::vector<uint32_t> unit_of_bucket;

  std::string alone_from;  ///< source of `alone`: measured without computation, or estimated
  std::string sizes;       ///< bucket sizes and whether they were chosen or configured
  /// Why figures of this report contradict each other; empty if they do not.
  std::string contradiction;
  /// Additional members of the JSON object.
  std::vector<std::pair<std::string, double>> more;

  /// Bytes that are reduced, with the gaps between gradients.
  int64_t bytes() const;
  /// Bytes of gradients; `bytes` if the contents are not known.
  int64_t gradient_bytes() const;
  /// By bucket: seconds by which it prolonged the wait after backward. They add up to
  /// `step.exposed`: the last one's include the time from its sum until the rank went on.
  std::vector<double> exposed() const;
  /// By bucket: why that was.
  std::vector<dist::Exposure> causes() const;
};

/// Adds the units of a sharded model to a report of its steps.
void add_units(OverlapReport& report, const dist::ShardedModel& sharded);

/// Returns "chosen: 7 buckets of up to 2.5 MiB, ..." or "7 buckets of sizes as configured".
std::string sizes_of_buckets(const dist::Reducer& reducer);

/// Collective: each rank passes its own steps, the same number on all, and gets the same report. A
/// run cannot measure how long a bucket's transfer alone takes; it is estimated by the fastest of
/// these steps, counted from the time when all ranks had launched it and the previous bucket was
/// done.
OverlapReport overlap_report(dist::ProcessGroup& group, std::span<const StepOverlap> steps,
                             std::string name);

/// Returns "slow link": why unit `unit` of a sharded model was waited for.
const char* cause_of_gather(const OverlapReport& report, size_t unit);
/// Returns by bucket why it was exposed: "slow rank (rank 2 was ready last)".
std::vector<std::string> cause_texts(const OverlapReport& report);
/// Summary for the terminal, at most two lines.
std::vector<std::string> overlap_summary(const OverlapReport& report);
/// The data of `report` for overlap_chart.
OverlapTimeline overlap_timeline(const OverlapReport& report);
/// The report as one JSON object: config, ranks, steps, rank, gradient_bytes, reduced_bytes (with
/// the gaps), `more`, step_ms, backward_ms, exposed_comm_ms, contradiction if there is one, sizes,
/// alone_from, and buckets: first and last parameter, gradient_bytes, bytes, ready_ms, all_ready_ms
/// (on the last rank), last_rank, launched_ms, done_ms, alone_ms (null where not measured),
/// exposed_ms, cause. Of a sharded model also the unit of each bucket, gather_wait_ms, and
/// "gathers" by unit: unit, bytes, exposed_ms (how long its parameters were waited for), cause.
std::string overlap_json(const OverlapReport& report);

}  // namespace lockstep::train
