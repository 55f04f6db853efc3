#include "train/run/rank_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "tests/dist/group/on_ranks.h"

namespace lockstep::train {
namespace {

StepResult step_of(double seconds, double data_ms, double exposed_ms) {
  StepResult step;
  step.seconds = seconds;
  step.data_wait_ms = data_ms;
  step.exposed_comm_ms = exposed_ms;
  return step;
}

RankComparison taken(RankSpeed& speed) {
  std::optional<RankComparison> found;
  while (!(found = speed.take())) std::this_thread::yield();
  return *found;
}

TEST(RankSpeed, RanksGetTheMeansOfEachOthersSteps) {
  dist::all_ranks(2, [](dist::ProcessGroup& group) {
    RankSpeed speed(&group);
    const double rank = group.rank();
    for (const double ms : {10.0, 30.0}) speed.add(step_of((ms + rank + 4) / 1e3, rank, 4));
    speed.exchange();
    const RankComparison all = taken(speed);
    EXPECT_EQ(all.steps, 2);
    ASSERT_EQ(all.ranks.size(), 2u);
    for (const RankTimes& each : all.ranks) {
      EXPECT_NEAR(each.compute_ms, 20, 1e-9);
      EXPECT_NEAR(each.data_ms, each.rank, 1e-9);
      EXPECT_NEAR(each.exposed_ms, 4, 1e-9);
    }
    EXPECT_EQ(all.ranks[1].rank, 1);
    EXPECT_FALSE(speed.take()) << "it is told once";

    speed.add(step_of(0.05, 0, 0));
    speed.exchange();
    const RankComparison next = taken(speed);
    EXPECT_EQ(next.steps, 1);
    EXPECT_NEAR(next.ranks[0].compute_ms, 50, 1e-9);
  });
}

TEST(RankSpeed, AfterARestartOnlyLaterStepsCount) {
  dist::all_ranks(2, [](dist::ProcessGroup& group) {
    RankSpeed speed(&group);
    speed.add(step_of(0.09, 0, 0));
    speed.exchange();
    speed.add(step_of(0.08, 0, 0));
    speed.restart();
    EXPECT_FALSE(speed.take()) << "of steps before";
    speed.exchange();  // of no steps
    speed.add(step_of(0.02, 0, 0));
    speed.exchange();
    const RankComparison all = taken(speed);
    EXPECT_EQ(all.steps, 1);
    EXPECT_NEAR(all.ranks[1].compute_ms, 20, 1e-9);
  });
}

TEST(RankSpeed, AStepWhoseBatchWasWaitedForBeforeComputesForNoLessThanNothing) {
  dist::all_ranks(2, [](dist::ProcessGroup& group) {
    RankSpeed speed(&group);
    speed.add(step_of(0.001, 5, -1));
    speed.exchange();
    EXPECT_EQ(taken(speed).ranks[1].compute_ms, 0);
  });
}

TEST(RankSpeed, AnErrorIsLeftToTheNextOperation) {
  dist::all_ranks(2, [](dist::ProcessGroup& group) {
    RankSpeed speed(&group);
    speed.add(step_of(0.001, 0, 0));
    if (group.rank() == 1) {
      group.abort("on purpose");
      return;
    }
    try {
      speed.exchange();
    } catch (const DistError&) {
      return;  // the other rank's failure was known by then
    }
    EXPECT_THROW(group.barrier().wait(), DistError);
    EXPECT_FALSE(speed.take());
  });
}

TEST(RankSpeed, ARankAloneIsComparedWithNobody) {
  RankSpeed speed(nullptr);
  speed.add(step_of(1, 0, 0));
  speed.exchange();
  EXPECT_FALSE(speed.take());
}

}  // namespace
}  // namespace lockstep::train
