#include "train/run/slow_rank.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::train {
namespace {

/// Ranks that compute for so many ms; each waits 2 ms for its data.
RankComparison compared(const std::vector<double>& compute_ms) {
  RankComparison comparison{.steps = 5, .ranks = {}};
  for (const double ms : compute_ms) {
    comparison.ranks.push_back({.rank = static_cast<int>(comparison.ranks.size()),
                                .compute_ms = ms,
                                .data_ms = 2,
                                .exposed_ms = 100 - ms});
  }
  return comparison;
}

TEST(SlowRankWatch, FindsARankThatIsTooSlowThreeTimesInARow) {
  SlowRankWatch watch(1.5);
  EXPECT_EQ(watch.add(compared({10, 40, 12})), std::nullopt);
  EXPECT_EQ(watch.add(compared({10, 40, 12})), std::nullopt);
  EXPECT_EQ(watch.add(compared({10, 40, 12})), (SlowRank{1, 42, 14}));
}

TEST(SlowRankWatch, BeginsAnewAfterAComparisonWithinTheLimitOrWithAnotherRank) {
  SlowRankWatch watch(1.5);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(watch.add(compared({10, 40}))) << i;
  EXPECT_FALSE(watch.add(compared({10, 16}))) << "18 is 1.5 times 12";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(watch.add(compared({10, 40}))) << i;
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(watch.add(compared({40, 10}))) << i;
  EXPECT_EQ(watch.add(compared({40, 10})), (SlowRank{0, 42, 12}));
}

TEST(SlowRankWatch, CountsWaitingForDataAndNotForOthers) {
  SlowRankWatch watch(1.5);
  RankComparison comparison = compared({10, 10});
  comparison.ranks[0].data_ms = 20;
  comparison.ranks[1].exposed_ms = 500;
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(watch.add(comparison)) << i;
  EXPECT_EQ(watch.add(comparison), (SlowRank{0, 30, 12}));
}

TEST(SlowRankWatch, LooksAtNobodyWithoutALimitOrWithoutOthers) {
  SlowRankWatch off(0);
  SlowRankWatch alone(1.5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(off.add(compared({1, 1000}))) << i;
    EXPECT_FALSE(alone.add(compared({1000}))) << i;
  }
  EXPECT_FALSE(off.is_on());
}

TEST(SlowRankWatch, SaysWhatWasFound) {
  EXPECT_EQ(
      SlowRankWatch(1.5).text({1, 42, 14}),
      "works 42 ms in a step, the slowest of the others 14, 3 times in a row: expected at most "
      "1.5 times as long (parallel.leave_out_slower)");
}

}  // namespace
}  // namespace lockstep::train
