#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_line.h"

namespace lockstep::train {

/// What one rank did in a step: milliseconds, the mean of some steps.
struct RankTimes {
  int rank = 0;
  double compute_ms = 0;  ///< the rest of the step
  double data_ms = 0;     ///< it waited for its batch
  double exposed_ms = 0;  ///< it waited for other ranks: for their gradients or parameters
  /// Part of compute_ms in which its training thread was ready to run and other threads or
  /// processes had its core; negative where the system does not tell.
  double core_ms = -1;

  /// The time in which it held up the others, if they waited for it.
  double work_ms() const { return compute_ms + data_ms; }
  double step_ms() const { return work_ms() + exposed_ms; }
  friend bool operator==(const RankTimes&, const RankTimes&) = default;
};

/// The ranks of a run side by side.
struct RankComparison {
  /// Of more ranks the ones with the longest work are kept.
  static constexpr size_t kMostRanks = 64;

  int64_t steps = 0;             ///< up to the one that was compared last
  std::vector<RankTimes> ranks;  ///< by rank
  friend bool operator==(const RankComparison&, const RankComparison&) = default;
};

/// Why a rank is the slowest.
enum class SlowReason {
  kNone,     ///< it is not: no rank stands out
  kCompute,  ///< it computes for longer
  kData,     ///< it waits for its data
  kLink,     ///< the ranks are equally fast, and wait for transfers
  kCores,    ///< others use its cores
};
/// "none", "compute", "data", "link", "another process on its cores"
const char* name(SlowReason reason);

struct SlowestRank {
  int rank = 0;
  SlowReason reason = SlowReason::kNone;
  double ms = 0;  ///< of each step that the reason costs
};

/// The rank with the longest work and why; less than a twentieth of the step is no reason. Of at
/// least one rank.
SlowestRank slowest_of(const RankComparison& comparison);
/// Says in a sentence what `slowest_of` finds.
std::string slowest_text(const RankComparison& comparison);
/// A table for the terminal, of the `most` ranks with the longest work, and the sentence. Empty for
/// fewer than two ranks.
std::string ranks_text(const RankComparison& comparison, size_t most = 8);

/// Keeps at most kMostRanks of them.
RankComparison with_slowest(RankComparison comparison);
/// Adds "rank_steps" and, by rank, "rank_compute_ms", "rank_data_wait_ms", "rank_exposed_comm_ms"
/// and "rank_core_wait_ms", if known; and "rank_numbers" where some ranks are left out.
void add_to(JsonLine& line, const RankComparison& comparison);

}  // namespace lockstep::train
