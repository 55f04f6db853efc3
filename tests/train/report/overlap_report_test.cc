// What a run of several ranks reports about its communication.

#include "train/report/overlap_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/train/rank_runs.h"
#include "tests/train/report/well_formed_xml.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A step of two buckets in which everything happens `late` seconds later.
StepOverlap step(double late = 0) {
  return {.seconds = 1.5 + late,
          .backward_end = 1 + late,
          .exposed = 0.25,
          .bytes = {1 << 20, 2 << 20},
          .ready = {0.25 + late, 0.75 + late},
          .launched = {0.25 + late, 0.75 + late},
          .done = {0.5 + late, 1.25 + late}};
}

TEST(StepOverlap, MedianIsThatOfEveryFigureByItself) {
  std::vector<StepOverlap> steps = {step(0), step(8), step(1)};
  steps[0].done[1] = 99;
  const StepOverlap median = median_step(steps);
  EXPECT_EQ(median.seconds, 2.5);
  EXPECT_THAT(median.ready, ElementsAre(1.25, 1.75));
  EXPECT_THAT(median.done, ElementsAre(1.5, 9.25));
  EXPECT_THAT(median.bytes, ElementsAre(1 << 20, 2 << 20));
}

TEST(RecentOverlap, KeepsTheNewestStepsOfOnePlan) {
  RecentOverlap recent;
  for (size_t i = 0; i < RecentOverlap::kSteps + 5; ++i) recent.add(step(static_cast<double>(i)));
  ASSERT_EQ(recent.steps().size(), RecentOverlap::kSteps);
  EXPECT_EQ(recent.steps().front().backward_end, 6);
  StepOverlap other = step();
  other.bytes = {3 << 20};
  recent.add(other);
  EXPECT_EQ(recent.steps().size(), 1U) << "buckets of another plan are not compared";
}

/// Rank 0's report when rank 1 does everything but the sums `late` seconds later. The last of its
/// steps has the fastest transfers.
OverlapReport report_of_two(double late) {
  OverlapReport report;
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    std::vector<StepOverlap> steps(3, step(group.rank() == 0 ? 0 : late));
    for (StepOverlap& each : steps) each.done = step().done;
    steps[2].done[1] -= 0.125;
    const OverlapReport own = overlap_report(group, steps, "a run");
    if (group.rank() == 0) report = own;
  }));
  return report;
}

TEST(OverlapReport, TransfersAloneAreTheFastestOfEachBucketAfterAllRanksHaveLaunched) {
  const OverlapReport together = report_of_two(0);
  EXPECT_THAT(together.alone, ElementsAre(0.25, 0.375));
  const OverlapReport later = report_of_two(0.125);
  EXPECT_THAT(later.alone, ElementsAre(0.125, 0.25));
  EXPECT_EQ(later.ranks, 2);
  EXPECT_EQ(later.steps, 3);
}

TEST(OverlapReport, ARankThatIsReadyLaterIsToBlame) {
  EXPECT_THAT(report_of_two(0).causes(),
              ElementsAre(dist::Exposure::kHidden, dist::Exposure::kLateBucket));
  // Rank 1's bucket is ready at 1.1875, after backward has ended on rank 0.
  const OverlapReport report = report_of_two(0.4375);
  EXPECT_THAT(report.alone, ElementsAre(0, 0));
  EXPECT_THAT(report.causes(), ElementsAre(dist::Exposure::kHidden, dist::Exposure::kSlowRank));
}

TEST(OverlapReport, TheSummaryNamesTheBucketThatWasWaitedForMost) {
  OverlapReport report = report_of_two(0);
  EXPECT_THAT(overlap_summary(report),
              ElementsAre("250.0 of 1500.0 ms a step waited for other ranks' gradients (16.7 %), "
                          "median of the last 3",
                          "most for bucket 2 of 2 (2.0 MiB), 250.0 ms on rank 0: late bucket"));
  report.own.done = {1.5, 1.625};
  EXPECT_THAT(report.added_waits(), ElementsAre(0.5, 0.125));
  EXPECT_THAT(overlap_summary(report)[1], HasSubstr("bucket 1 of 2"));
  report.own.done = {0.5, 0.875};
  EXPECT_EQ(overlap_summary(report)[1], "all buckets came before backward ended");
}

TEST(OverlapReport, JsonHoldsEveryBucket) {
  const auto json = nlohmann::json::parse(overlap_json(report_of_two(0.125)));
  EXPECT_EQ(json["config"], "a run");
  EXPECT_EQ(json["gradient_bytes"], 3 << 20);
  EXPECT_EQ(json["step_ms"], 1625) << "of the slowest rank";
  EXPECT_THAT(json["alone_from"].get<std::string>(), HasSubstr("estimated"));
  ASSERT_EQ(json["buckets"].size(), 2U);
  EXPECT_EQ(json["buckets"][1]["ready_ms"], 750);
  EXPECT_EQ(json["buckets"][1]["all_ready_ms"], 875);
  EXPECT_EQ(json["buckets"][1]["exposed_ms"], 250);
  EXPECT_EQ(json["buckets"][0]["cause"], "hidden");
}

TEST(OverlapReport, JsonSaysHowLongEachUnitOfAShardedModelWasWaitedForAndWhy) {
  OverlapReport report = report_of_two(0);
  report.units = {"", "h.0", "h.1"};
  report.unit_bytes = {100, 200, 300};
  report.unit_of_bucket = {2, 0};
  report.own.gather_wait = report.latest.gather_wait = {0.25, 0.125, 0};
  report.own.gather_late = report.latest.gather_late = {0.25, 0, 0};
  const auto json = nlohmann::json::parse(overlap_json(report));
  EXPECT_EQ(json["gather_wait_ms"], 375);
  EXPECT_EQ(json["exposed_comm_ms"], 250) << "of gradients";
  EXPECT_EQ(json["buckets"][0]["unit"], "h.1");
  ASSERT_EQ(json["gathers"].size(), 3U);
  EXPECT_EQ(json["gathers"][0]["cause"], "begun when it was needed");
  EXPECT_EQ(json["gathers"][1]["cause"], "slow link");
  EXPECT_EQ(json["gathers"][1]["exposed_ms"], 125);
  EXPECT_EQ(json["gathers"][1]["bytes"], 200);
  EXPECT_EQ(json["gathers"][2]["cause"], "hidden");
}

TEST(OverlapReport, OfAShardedRunNamesItsUnits) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      tiny_run(folder, "train { steps: 2 } parallel { strategy: FULL_SHARD }");
  rethrow_first(run_on_ranks(config, folder, 2));
  std::ifstream file(folder / "run/overlap.json");
  const auto json = nlohmann::json::parse(file);
  ASSERT_EQ(json["buckets"].size(), 3U);
  EXPECT_EQ(json["buckets"][0]["unit"], "h.1");
  EXPECT_EQ(json["buckets"][2]["unit"], "");
  EXPECT_EQ(json["gathers"].size(), 3U);
}

TEST(OverlapReport, IsNotWrittenForARankAlone) {
  const TemporaryDirectory alone;
  for (const auto& error : run_on_ranks(tiny_run(alone, "train { steps: 2 }"), alone, 1)) {
    EXPECT_FALSE(error);
  }
  EXPECT_TRUE(std::filesystem::exists(alone / "run/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(alone / "run/overlap.json"));
}

}  // namespace
}  // namespace lockstep::train
