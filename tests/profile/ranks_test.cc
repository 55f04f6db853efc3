#include "profile/ranks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "profile/chrome_trace.h"
#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

/// Two ranks of which rank 1 began 300 ns later by the clock of its host, which is 100 ns ahead.
std::vector<Profile> two_ranks() {
  std::vector<Profile> profiles = {made_up_profile(), made_up_profile()};
  profiles[0].rank.rank = 0;
  profiles[1].begin_unix_ns += 300;
  profiles[1].rank.clock_offset_ns = 100;
  return profiles;
}

TEST(Ranks, ClocksAreAlignedByTheirOffsets) {
  std::vector<Profile> profiles = two_ranks();
  align(profiles);
  EXPECT_EQ(profiles[0].spans[1].begin_ns, 1'500);
  EXPECT_EQ(profiles[1].spans[1].begin_ns, 1'700);
  EXPECT_EQ(profiles[0].begin_unix_ns, profiles[1].begin_unix_ns);
  // It ends where it ended: 200 ns later.
  EXPECT_EQ(profiles[0].duration_ns, 11'000);
  EXPECT_EQ(profiles[1].duration_ns, 11'200);
  align(profiles);
  EXPECT_EQ(profiles[1].spans[1].begin_ns, 1'700);
}

TEST(Ranks, TheSlowestRankIsTheOneThatWaitsLeast) {
  std::vector<Profile> profiles = two_ranks();
  ProfileSpan wait;
  wait.kind = SpanKind::kWait;
  wait.name = kWaitForRanks;
  wait.parent = 0;
  wait.step = 12;
  wait.begin_ns = 5'000;
  wait.duration_ns = 4'000;
  profiles[0].spans.push_back(wait);
  // What another thread waits for holds no step up.
  wait.thread = 1;
  wait.parent = ProfileSpan::kNone;
  profiles[1].spans.push_back(wait);
  const std::vector<StepOfRanks> steps = steps_of_ranks(profiles);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 12);
  EXPECT_EQ(steps[0].slowest, 1);
  EXPECT_DOUBLE_EQ(steps[0].slowest_ms, 0.01);
  EXPECT_DOUBLE_EQ(steps[0].fastest_ms, 0.006);
  EXPECT_EQ(steps_text(steps), "step 13: rank 1 worked longest, 0.01 ms; the quickest 0.01 ms\n");
}

TEST(Ranks, StepsThatARankLacksAreLeftOut) {
  std::vector<Profile> profiles = two_ranks();
  profiles[1].spans[0].step = 13;
  EXPECT_TRUE(steps_of_ranks(profiles).empty());
}

TEST(Ranks, AMergedTraceHasAProcessForEachRank) {
  std::vector<Profile> profiles = two_ranks();
  align(profiles);
  std::set<int> processes;
  std::set<int> ids;
  size_t spans = 0;
  const auto trace = nlohmann::json::parse(merged_trace_json(profiles));
  for (const auto& event : trace["traceEvents"]) {
    processes.insert(event["pid"].get<int>());
    if (event["ph"] != "X") continue;
    ++spans;
    ids.insert(event["args"]["External id"].get<int>());
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1}));
  EXPECT_EQ(ids.size(), spans);
}

}  // namespace
}  // namespace lockstep::profile
