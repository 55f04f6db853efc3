#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/leaf_deal.h"
#include "train/report/rank_times.h"

namespace lockstep::train {

/// A deal by which the rank that works longest is predicted to be done first. `work_us`: for each
/// rank the time, above 0, that its leaves of `now` take in a step; a leaf is taken to cost a rank
/// its mean. Returns `now` unless the longest work becomes shorter by a twentieth, since times
/// vary. A function of these integers alone.
dist::LeafDeal deal_by_speed(const dist::LeafDeal& now, std::span<const int64_t> work_us);

/// A rank of a deal.
struct DealtRank {
  dist::LeafDeal deal;
  int rank = 0;
};
/// Returns, of all deals of `leaves` leaves that ranks of unequal speed may come to, one with a
/// rank that holds the most sums side by side (dist::stack_depth); where several do, the rank with
/// the most leaves. Requires 1 <= ranks <= leaves.
DealtRank rank_with_most_sums(int64_t leaves, int ranks);

/// Decides from comparisons of the ranks which leaves each of them is to have
/// (parallel.balance: SPEED). For the rank that leads. Not thread-safe.
class Balance {
 public:
  /// Steps between two comparisons.
  static constexpr int64_t kEvery = 5;

  /// Takes a comparison of all ranks over steps with the deal `now`. Returns another deal where one
  /// is better, from the second comparison with a deal on: of the last two the shorter times count,
  /// so that what held up a rank once moves no leaf.
  std::optional<dist::LeafDeal> next(const dist::LeafDeal& now, const RankComparison& comparison);

 private:
  std::vector<int64_t> last_us_;  ///< of the comparison before; empty after a change
};

/// Says what changed: "11 + 5 leaves by rank instead of 8 + 8". Of more than 16 ranks it tells the
/// least and the most.
std::string deal_text(const dist::LeafDeal& now, const dist::LeafDeal& before);

}  // namespace lockstep::train
