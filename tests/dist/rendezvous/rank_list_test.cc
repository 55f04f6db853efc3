#include "dist/rendezvous/rank_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::dist {
namespace {

TEST(RankList, RunsAreCutShort) {
  EXPECT_EQ(rank_list({5}), "rank 5");
  EXPECT_EQ(rank_list({5, 0, 2, 1}), "ranks 0-2, 5");
  EXPECT_EQ(rank_list({3, 4}), "ranks 3, 4");
  EXPECT_EQ(rank_list({7, 7}), "rank 7");
  EXPECT_EQ(rank_list({}), "no rank");
}

TEST(RankList, GapsAreShownBetweenRuns) {
  EXPECT_EQ(rank_list({0, 1, 3, 4, 5, 9}), "ranks 0, 1, 3-5, 9");
  EXPECT_EQ(rank_list({0, 2}), "ranks 0, 2");
}

TEST(EveryRank, CountsFromZero) {
  EXPECT_EQ(every_rank(3), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(every_rank(0).empty());
}

}  // namespace
}  // namespace lockstep::dist
