#include "train/report/rank_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Three ranks that compute for 100 ms, wait for nothing, and lose no core.
RankComparison equal_ranks() {
  RankComparison comparison{.steps = 10, .ranks = {}};
  for (int rank = 0; rank < 3; ++rank) {
    comparison.ranks.push_back({.rank = rank, .compute_ms = 100, .exposed_ms = 1, .core_ms = 0});
  }
  return comparison;
}

/// The same, with the other ranks waiting for rank 1, which works for `ms` longer.
RankComparison with_slow_rank(double ms) {
  RankComparison comparison = equal_ranks();
  comparison.ranks[0].exposed_ms += ms;
  comparison.ranks[2].exposed_ms += ms;
  return comparison;
}

void expect_reason(const RankComparison& comparison, SlowReason reason, double ms) {
  const SlowestRank slowest = slowest_of(comparison);
  EXPECT_EQ(slowest.reason, reason) << name(slowest.reason);
  EXPECT_EQ(slowest.rank, 1);
  EXPECT_NEAR(slowest.ms, ms, 1e-9);
}

TEST(RankTimes, OfEqualRanksNoneIsTheSlowest) {
  EXPECT_EQ(slowest_of(equal_ranks()).reason, SlowReason::kNone);
  EXPECT_EQ(slowest_text(equal_ranks()), "no rank is slower than the others");
}

TEST(RankTimes, ARankThatComputesForLongerIsTheSlowest) {
  RankComparison comparison = with_slow_rank(20);
  comparison.ranks[1].compute_ms += 20;
  expect_reason(comparison, SlowReason::kCompute, 20);
  EXPECT_EQ(slowest_text(comparison),
            "rank 1 is the slowest: compute, 20.0 ms a step more than others");
}

TEST(RankTimes, ARankThatWaitsForItsDataIsTheSlowest) {
  RankComparison comparison = with_slow_rank(20);
  comparison.ranks[1].data_ms += 15;
  comparison.ranks[1].compute_ms += 5;
  expect_reason(comparison, SlowReason::kData, 20);
}

TEST(RankTimes, ARankWhoseCoreOthersUseIsToldFromOneThatComputesForLonger) {
  RankComparison comparison = with_slow_rank(20);
  comparison.ranks[1].compute_ms += 20;
  comparison.ranks[1].core_ms += 15;
  expect_reason(comparison, SlowReason::kCores, 20);
  // The others wait for their cores as long.
  for (RankTimes& each : comparison.ranks) each.core_ms = 15;
  expect_reason(comparison, SlowReason::kCompute, 20);
  for (RankTimes& each : comparison.ranks) each.core_ms = -1;
  expect_reason(comparison, SlowReason::kCompute, 20);
}

TEST(RankTimes, WhatEvenTheSlowestWaitsForIsTheLink) {
  RankComparison comparison = equal_ranks();
  for (RankTimes& each : comparison.ranks) each.exposed_ms = 30;
  comparison.ranks[1].compute_ms += 1;
  expect_reason(comparison, SlowReason::kLink, 30);
  EXPECT_THAT(slowest_text(comparison), HasSubstr("the link: even rank 1"));
}

TEST(RankTimes, OneOfTwoRanksIsComparedWithTheOther) {
  RankComparison comparison = with_slow_rank(20);
  comparison.ranks[1].compute_ms += 20;
  comparison.ranks.pop_back();
  expect_reason(comparison, SlowReason::kCompute, 20);
}

TEST(RankTimes, TheTableMarksTheSlowest) {
  RankComparison comparison = with_slow_rank(20);
  comparison.ranks[1].data_ms = 20;
  comparison.ranks[2].core_ms = -1;
  EXPECT_EQ(ranks_text(comparison),
            "  rank      compute other's core         data  other ranks   of a step, ms; mean of "
            "10\n"
            "     0        100.0          0.0          0.0         21.0\n"
            "     1        100.0          0.0         20.0          1.0   data\n"
            "     2        100.0            -          0.0         21.0\n"
            "rank 1 is the slowest: data, for which it waits 20.0 ms a step longer than others\n");
  EXPECT_EQ(ranks_text({.steps = 1, .ranks = {{}}}), "");
}

TEST(RankTimes, OfManyRanksTheSlowestAreShownAndKept) {
  RankComparison comparison{.steps = 10, .ranks = {}};
  for (int rank = 0; rank < 100; ++rank) {
    comparison.ranks.push_back({.rank = rank, .compute_ms = 100.0 + rank % 50});
  }
  const std::string text = ranks_text(comparison, 4);
  EXPECT_THAT(text, HasSubstr("\n    49        149.0"));
  EXPECT_THAT(text, HasSubstr("\n    99        149.0"));
  EXPECT_THAT(text, HasSubstr("(96 ranks more, "));
  const RankComparison kept = with_slowest(comparison);
  EXPECT_EQ(kept.ranks.size(), RankComparison::kMostRanks);
  EXPECT_EQ(kept.ranks.front().rank, 18);
  JsonLine line;
  add_to(line, kept);
  EXPECT_THAT(line.text(), HasSubstr("\"rank_numbers\":[18,19,"));
}

TEST(RankTimes, ALineOfTheMetricsHasAListForEachPart) {
  RankComparison comparison = with_slow_rank(0.5);
  comparison.ranks[0].data_ms = 0.12345;
  JsonLine line;
  add_to(line, comparison);
  EXPECT_EQ(
      line.text(),
      "{\"rank_steps\":10,\"rank_compute_ms\":[100,100,100],\"rank_data_wait_ms\":[0.123,0,0],"
      "\"rank_exposed_comm_ms\":[1.5,1,1.5],\"rank_core_wait_ms\":[0,0,0]}");
  for (RankTimes& each : comparison.ranks) each.core_ms = -1;
  JsonLine without;
  add_to(without, comparison);
  EXPECT_THAT(without.text(), Not(HasSubstr("rank_core_wait_ms")));
}

}  // namespace
}  // namespace lockstep::train
