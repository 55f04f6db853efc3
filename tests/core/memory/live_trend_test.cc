#include "core/memory/live_trend.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LiveTrend, FollowsForwardAndBackwardPasses) {
  LiveTrend trend;
  for (const int64_t live : {0, 100, 1000}) EXPECT_FALSE(trend.is_falling(live)) << live;
  for (const int64_t live : {899, 500, 200}) EXPECT_TRUE(trend.is_falling(live)) << live;
  EXPECT_FALSE(trend.is_falling(301));
  EXPECT_FALSE(trend.is_falling(275));
  EXPECT_TRUE(trend.is_falling(270));
}

TEST(LiveTrend, IgnoresChangesOfLessThanATenthOfTheMaximum) {
  LiveTrend trend;
  for (const int64_t live : {1000, 900, 1000}) EXPECT_FALSE(trend.is_falling(live)) << live;
  for (const int64_t live : {800, 900, 700, 800}) EXPECT_TRUE(trend.is_falling(live)) << live;
}

TEST(LiveTrend, CountsAsRisingAfterAReset) {
  LiveTrend trend;
  trend.is_falling(1000);
  EXPECT_TRUE(trend.is_falling(10));
  trend.reset();
  EXPECT_FALSE(trend.is_falling(10));
}

}  // namespace
}  // namespace lockstep
