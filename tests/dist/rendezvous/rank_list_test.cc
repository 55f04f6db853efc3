#include "dist/rendezvous/rank_list.h"

#include <gtest/gtest.h>

namespace lockstep::dist {
namespace {

TEST(RankList, RunsAreCutShort) {
  EXPECT_EQ(rank_list({5}), "rank 5");
  EXPECT_EQ(rank_list({5, 0, 2, 1}), "ranks 0-2, 5");
  EXPECT_EQ(rank_list({3, 4}), "ranks 3, 4");
  EXPECT_EQ(rank_list({7, 7}), "rank 7");
  EXPECT_EQ(rank_list({}), "no rank");
}

}  // namespace
}  // namespace lockstep::dist
