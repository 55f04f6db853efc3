// What a run of several ranks reports about its communication.

#include "train/report/overlap_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/train/rank_runs.h"
#include "tests/train/report/well_formed_xml.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

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

/// The report when rank 1 does everything but the sums `late` seconds later. The last of the steps
/// has the fastest transfers.
OverlapReport report_of_two(double late) {
  std::array<OverlapReport, 2> reports;
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    std::vector<StepOverlap> steps(3, step(group.rank() == 0 ? 0 : late));
    for (StepOverlap& each : steps) each.done = step().done;
    steps[2].done[1] -= 0.125;
    reports[static_cast<size_t>(group.rank())] = overlap_report(group, steps, "a run");
  }));
  EXPECT_EQ(overlap_json(reports[0]), overlap_json(reports[1])) << "all ranks get the same";
  return reports[0];
}

TEST(OverlapReport, IsOfTheMedianStepOfTheSlowestRank) {
  OverlapReport report;
  rethrow_first(dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    // Rank 1 is the slowest in all steps. By its durations the first step is the median.
    const double late = group.rank() == 1 ? 0.5 : 0;
    const std::vector<StepOverlap> steps = {step(2 + late), step(7 + late), step(1 + late)};
    const OverlapReport own = overlap_report(group, steps, "a run");
    if (group.rank() == 0) report = own;
  }));
  EXPECT_EQ(report.rank, 1);
  EXPECT_EQ(report.steps, 3);
  EXPECT_EQ(report.ranks, 3);
  EXPECT_EQ(report.step.seconds, 4);
  EXPECT_EQ(report.step.backward_end, 3.5);
  EXPECT_THAT(report.step.ready, ElementsAre(2.75, 3.25));
  EXPECT_THAT(report.step.launched, ElementsAre(2.75, 3.25));
  EXPECT_THAT(report.step.done, ElementsAre(3, 3.75));
  EXPECT_THAT(report.all_ready, ElementsAre(2.75, 3.25));
  EXPECT_THAT(report.last_rank, ElementsAre(1, 1));
  EXPECT_EQ(report.bytes(), 3 << 20);
}

TEST(OverlapReport, TransfersAloneAreTheFastestOfEachBucketAfterAllRanksHaveLaunched) {
  EXPECT_THAT(report_of_two(0).alone, ElementsAre(Optional(0.25), Optional(0.375)));
  EXPECT_THAT(report_of_two(0.125).alone, ElementsAre(Optional(0.125), Optional(0.25)));
}

TEST(OverlapReport, ATransferThatWasNotSeenIsNotATimeOfZero) {
  // By the clocks, the second bucket was summed before rank 1 had it.
  const OverlapReport report = report_of_two(0.5);
  EXPECT_THAT(report.alone, ElementsAre(std::nullopt, std::nullopt));
  const auto json = nlohmann::json::parse(overlap_json(report));
  EXPECT_TRUE(json["buckets"][1]["alone_ms"].is_null());
}

TEST(OverlapReport, ABucketThatIsReadyLaterOnAnotherRankHasThatRankNamed) {
  EXPECT_THAT(report_of_two(0).causes(),
              ElementsAre(dist::Exposure::kHidden, dist::Exposure::kLateBucket));
  OverlapReport report = report_of_two(0);
  report.alone = {0.25, 0.125};
  report.all_ready[1] = 1.0;  // on rank 1; its transfer cannot end before backward does
  report.last_rank[1] = 1;
  EXPECT_THAT(report.causes(), ElementsAre(dist::Exposure::kHidden, dist::Exposure::kSlowRank));
  EXPECT_EQ(cause_texts(report)[1], "slow rank (rank 1 was ready last)");
  EXPECT_EQ(cause_texts(report)[0], "hidden");
}

TEST(OverlapReport, ABucketWhoseTransferWasNotSeenIsLateIfItWasReadyAfterBackward) {
  OverlapReport report = report_of_two(0);
  report.alone = {std::nullopt, std::nullopt};
  report.all_ready[1] = 1.0625;
  EXPECT_EQ(report.causes()[1], dist::Exposure::kSlowRank);
  report.step.ready[1] = 1.0625;
  EXPECT_EQ(report.causes()[1], dist::Exposure::kLateBucket);
}

TEST(OverlapReport, AGatherIsWaitedForFromFiftyMicrosecondsOn) {
  OverlapReport report;
  const auto cause = [&](double wait, double late) {
    report.step.gather_wait = {wait};
    report.step.gather_late = {late};
    return std::string(cause_of_gather(report, 0));
  };
  EXPECT_EQ(cause(49e-6, 49e-6), "hidden");
  EXPECT_EQ(cause(50e-6, 0), "slow link");
  EXPECT_EQ(cause(0.5, 0.25), "slow link");
  EXPECT_EQ(cause(0.5, 0.26), "begun when it was needed");
}

TEST(OverlapReport, OnTheTimelineATransferBeginsWhenTheLinkIsFreeAndAllHaveTheBucket) {
  OverlapReport report = report_of_two(0);
  const auto begins = [&] {
    std::vector<double> found;
    for (const OverlapTimeline::Bucket& each : overlap_timeline(report).buckets) {
      found.push_back(each.begin);
    }
    return found;
  };
  EXPECT_THAT(begins(), ElementsAre(250, 750));
  report.step.done = {1, 1.25};
  EXPECT_THAT(begins(), ElementsAre(250, 1000));
  report.all_ready = {0.5, 1.125};
  EXPECT_THAT(begins(), ElementsAre(500, 1125));
  report.step.launched = {0.625, 0.75};
  report.all_ready[1] = 2;
  EXPECT_THAT(begins(), ElementsAre(625, 1250)) << "no later than it ends";
  EXPECT_EQ(overlap_timeline(report).buckets[0].first, "") << "not known";
}

TEST(OverlapReport, ExposedTimesAddUpToTheStepsWhateverWasMeasured) {
  OverlapReport report = report_of_two(0);
  const auto sum = [&] {
    const std::vector<double> waits = report.exposed();
    return std::accumulate(waits.begin(), waits.end(), 0.0);
  };
  for (const double exposed : {0.0, 0.125, 0.25, 0.5}) {
    report.step.exposed = exposed;
    EXPECT_EQ(sum(), exposed);
  }
  report.step.done = {1.5, 1.625};
  report.step.exposed = 0.625;
  EXPECT_THAT(report.exposed(), ElementsAre(0.5, 0.125));
  // All sums are there, but the rank does not go on: nobody but the processor is to blame.
  report.step.done = {0.5, 0.875};
  report.step.exposed = 0.25;
  EXPECT_THAT(report.exposed(), ElementsAre(0, 0.25));
  EXPECT_EQ(report.causes()[1], dist::Exposure::kProcessor);
  // Nobody waited for what came after backward.
  report.step.done = {0.5, 1.25};
  report.step.exposed = 0;
  EXPECT_EQ(report.causes()[1], dist::Exposure::kHidden);
}

TEST(OverlapReport, TheSummaryNamesTheBucketThatWasWaitedForMost) {
  OverlapReport report = report_of_two(0);
  EXPECT_THAT(overlap_summary(report),
              ElementsAre("250.0 of 1500.0 ms a step waited for other ranks' gradients (16.7 %): "
                          "rank 0, the slowest, in the median of the last 3 steps",
                          "most for bucket 2 of 2 (2.0 MiB), 250.0 ms: late bucket"));
  report.step.done = {1.5, 1.625};
  report.step.exposed = 0.625;
  EXPECT_THAT(overlap_summary(report)[1], HasSubstr("bucket 1 of 2"));
  report.step.exposed = 0;
  EXPECT_EQ(overlap_summary(report)[1], "all buckets came before backward ended");
}

TEST(OverlapReport, JsonHoldsEveryBucket) {
  OverlapReport report = report_of_two(0.125);
  report.contents = {{.first = "a", .last = "b", .parameters = 2, .gradient_bytes = 1000},
                     {.first = "c", .last = "c", .parameters = 1, .gradient_bytes = 24}};
  const auto json = nlohmann::json::parse(overlap_json(report));
  EXPECT_EQ(json["config"], "a run");
  EXPECT_EQ(json["gradient_bytes"], 1024);
  EXPECT_EQ(json["reduced_bytes"], 3 << 20) << "with the gaps between gradients";
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["step_ms"], 1625) << "of the slowest rank";
  EXPECT_EQ(json["backward_ms"], 1125);
  EXPECT_FALSE(json.contains("contradiction"));
  EXPECT_THAT(json["alone_from"].get<std::string>(), HasSubstr("estimated"));
  ASSERT_EQ(json["buckets"].size(), 2U);
  const auto& second = json["buckets"][1];
  EXPECT_EQ(second["first"], "c");
  EXPECT_EQ(second["last"], "c");
  EXPECT_EQ(second["gradient_bytes"], 24);
  EXPECT_EQ(second["bytes"], 2 << 20);
  EXPECT_EQ(second["ready_ms"], 875);
  EXPECT_EQ(second["all_ready_ms"], 875);
  EXPECT_EQ(second["last_rank"], 1);
  EXPECT_EQ(second["launched_ms"], 875);
  EXPECT_EQ(second["done_ms"], 1250);
  EXPECT_EQ(second["alone_ms"], 250);
  EXPECT_EQ(second["exposed_ms"], json["exposed_comm_ms"]);
  EXPECT_EQ(json["buckets"][0]["cause"], "hidden");
  report.contradiction = "two clocks";
  EXPECT_EQ(nlohmann::json::parse(overlap_json(report))["contradiction"], "two clocks");
}

TEST(OverlapReport, TheTimelineHasTheStepsOwnTimes) {
  OverlapReport report = report_of_two(0.125);
  report.contents = {{.first = "a", .last = "b"}, {.first = "c", .last = "d"}};
  const OverlapTimeline timeline = overlap_timeline(report);
  EXPECT_THAT(timeline.title, HasSubstr("a run on 2 ranks: rank 1, the slowest"));
  EXPECT_EQ(timeline.wait_end, 1375);
  EXPECT_EQ(timeline.step_end, 1625);
  ASSERT_EQ(timeline.buckets.size(), 2U);
  EXPECT_EQ(timeline.buckets[1].first, "c");
  EXPECT_EQ(timeline.buckets[1].last, "d");
  EXPECT_EQ(timeline.buckets[1].begin, 875) << "all ranks have it, and the link is free";
  EXPECT_EQ(timeline.buckets[1].done, 1250);
  EXPECT_EQ(timeline.buckets[1].exposed, 250);
}

TEST(OverlapReport, JsonSaysHowLongEachUnitOfAShardedModelWasWaitedForAndWhy) {
  OverlapReport report = report_of_two(0);
  report.units = {"", "h.0", "h.1"};
  report.unit_bytes = {100, 200, 300};
  report.unit_of_bucket = {2, 0};
  report.step.gather_wait = {0.25, 0.125, 0};
  report.step.gather_late = {0.25, 0, 0};
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
