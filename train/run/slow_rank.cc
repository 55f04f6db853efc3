#include "train/run/slow_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep::train {

std::optional<SlowRank> SlowRankWatch::add(const RankComparison& comparison) {
  if (!is_on() || comparison.ranks.size() < 2) return std::nullopt;
  std::vector<RankTimes> ranks = comparison.ranks;
  std::ranges::partial_sort(ranks, ranks.begin() + 2, std::ranges::greater(), &RankTimes::work_ms);
  const SlowRank slowest{ranks[0].rank, ranks[0].work_ms(), ranks[1].work_ms()};
  if (slowest.work_ms <= limit_ * slowest.others_ms) {
    in_a_row_ = 0;
    return std::nullopt;
  }
  in_a_row_ = slowest.rank == suspect_ ? in_a_row_ + 1 : 1;
  suspect_ = slowest.rank;
  return in_a_row_ >= kInARow ? std::optional(slowest) : std::nullopt;
}

std::string SlowRankWatch::text(const SlowRank& found) const {
  return fmt::format(
      "works {:.0f} ms in a step, the slowest of the others {:.0f}, {} times in a row: expected at "
      "most {} times as long (parallel.leave_out_slower)",
      found.work_ms, found.others_ms, kInARow, limit_);
}

}  // namespace lockstep::train
