#include "launcher/launch/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LaunchFailure of_rank(int rank, const std::string& host = "") {
  return {rank, host, 9, 0, "was ended by signal 9 (Killed)"};
}

RestartPolicy policy(RestartPolicy::Options options, int ranks = 4,
                     std::vector<LaunchHost> hosts = {}) {
  return RestartPolicy(std::move(options), ranks, std::move(hosts));
}

TEST(RestartPolicy, DoublesTheWaitUpToAMinuteUntilTheBudgetIsSpent) {
  RestartPolicy restarts = policy({.max_restarts = 4, .delay_seconds = 20});
  std::vector<double> waits;
  for (;;) {
    const RestartPolicy::Decision next = restarts.after(of_rank(1), false);
    if (!next.again) break;
    waits.push_back(next.delay_seconds);
    EXPECT_EQ(next.number, static_cast<int>(waits.size()));
    EXPECT_EQ(next.ranks, 4);
  }
  EXPECT_THAT(waits, ElementsAre(20, 40, 60, 60));
}

TEST(RestartPolicy, HasItsWholeBudgetAgainAfterProgress) {
  RestartPolicy restarts = policy({.max_restarts = 1, .delay_seconds = 1});
  EXPECT_TRUE(restarts.after(of_rank(0), false).again);
  const RestartPolicy::Decision next = restarts.after(of_rank(0), true);
  EXPECT_TRUE(next.again);
  EXPECT_EQ(next.delay_seconds, 1);
  EXPECT_FALSE(restarts.after(of_rank(0), false).again);
}

TEST(RestartPolicy, LeavesNothingOutUnlessFewerRanksAreAllowed) {
  RestartPolicy restarts = policy({.max_restarts = 9});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(restarts.after(of_rank(3), false).ranks, 4);
}

TEST(RestartPolicy, LeavesOutARankThatFailsTwiceInARow) {
  RestartPolicy restarts = policy({.max_restarts = 9, .min_ranks = 2});
  EXPECT_EQ(restarts.after(of_rank(3), false).ranks, 4);
  EXPECT_EQ(restarts.after(of_rank(1), false).ranks, 4);
  const RestartPolicy::Decision next = restarts.after(of_rank(1), false);
  EXPECT_EQ(next.ranks, 3);
  EXPECT_EQ(next.note, "on 3 ranks: rank 1 failed 2 times in a row");
  EXPECT_EQ(restarts.after(of_rank(1), false).ranks, 3);
  EXPECT_EQ(restarts.after(of_rank(1), true).ranks, 3) << "progress was made in between";
  EXPECT_EQ(restarts.after(of_rank(1), false).ranks, 2);
  EXPECT_EQ(restarts.after(of_rank(1), false).ranks, 2);
  EXPECT_THAT(restarts.after(of_rank(1), false).note, HasSubstr("there are fewer than 2 ranks"));
}

TEST(RestartPolicy, TakesANumberOfRanksThatCanDoTheJob) {
  const auto is_even = [](int ranks) { return ranks % 2 == 0; };
  RestartPolicy restarts = policy({.max_restarts = 9, .min_ranks = 1, .can_do = is_even});
  (void)restarts.after(of_rank(3), false);
  EXPECT_EQ(restarts.after(of_rank(3), false).ranks, 2);
}

TEST(RestartPolicy, LeavesOutAHostThatIsLostOrFailsTwiceInARow) {
  RestartPolicy restarts =
      policy({.max_restarts = 9, .min_ranks = 2}, 6, {{"a", 2}, {"b", 2}, {"c", 2}});
  LaunchFailure gone{-1, "b", 0, 0, "is lost"};
  gone.host_lost = true;
  RestartPolicy::Decision next = restarts.after(gone, false);
  EXPECT_EQ(next.ranks, 4);
  EXPECT_THAT(next.left_out, ElementsAre("b"));
  EXPECT_EQ(next.note, "on 4 ranks: host b is lost");
  // Different ranks of one host.
  EXPECT_THAT(restarts.after(of_rank(2, "c"), false).left_out, ElementsAre("b"));
  next = restarts.after(of_rank(3, "c"), false);
  EXPECT_EQ(next.ranks, 2);
  EXPECT_THAT(next.left_out, ElementsAre("b", "c"));
}

LaunchFailure slow_rank(int rank, const std::string& host = "") {
  LaunchFailure failure{rank, host, 0, 8, "is too slow"};
  failure.slow = true;
  return failure;
}

TEST(RestartPolicy, LeavesOutASlowRankOrItsHostAtOnce) {
  RestartPolicy one_host = policy({.max_restarts = 1, .min_ranks = 2});
  RestartPolicy::Decision next = one_host.after(slow_rank(1, "here"), true);
  EXPECT_EQ(next.ranks, 3);
  EXPECT_EQ(next.note, "on 3 ranks: rank 1 is too slow");
  EXPECT_FALSE(next.keep_slow);

  RestartPolicy hosts = policy({.max_restarts = 1, .min_ranks = 2}, 4, {{"a", 2}, {"b", 2}});
  next = hosts.after(slow_rank(3, "b"), true);
  EXPECT_EQ(next.ranks, 2);
  EXPECT_THAT(next.left_out, ElementsAre("b"));
  EXPECT_EQ(next.note, "on 2 ranks: host b is too slow");
}

TEST(RestartPolicy, KeepsASlowRankForGoodWhereThereWouldBeTooFewWithoutIt) {
  for (const int least : {0, 4}) {
    RestartPolicy restarts = policy({.max_restarts = 2, .min_ranks = least});
    RestartPolicy::Decision next = restarts.after(slow_rank(1), true);
    EXPECT_TRUE(next.again);
    EXPECT_EQ(next.ranks, 4);
    EXPECT_TRUE(next.keep_slow);
    EXPECT_THAT(next.note, HasSubstr("rank 1 is too slow, but ")) << least;
    EXPECT_TRUE(restarts.after(of_rank(2), true).keep_slow) << "in later starts, too";
  }
}

TEST(RestartPolicy, KeepsAllWhereTheFailureNamesNobody) {
  RestartPolicy restarts = policy({.max_restarts = 9, .min_ranks = 1});
  for (int i = 0; i < 3; ++i) {
    const RestartPolicy::Decision next = restarts.after({}, false);
    EXPECT_EQ(next.ranks, 4);
    EXPECT_THAT(next.note, IsEmpty());
  }
}

}  // namespace
}  // namespace lockstep::launcher
