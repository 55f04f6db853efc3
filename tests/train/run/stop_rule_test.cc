#include "train/run/stop_rule.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(StopRule, WithoutTimesARunIsOverWhenAllStepsAreDone) {
  const StopRule rule{.steps = 10};
  EXPECT_FALSE(rule.is_over(9, 1e9));
  EXPECT_TRUE(rule.is_over(10, 0));
  EXPECT_FALSE(rule.is_out_of_time(1e9, 1e9));
}

TEST(StopRule, ATimeBudgetEndsTheRunBeforeItsSteps) {
  const StopRule rule{.steps = 10, .time_budget = 60};
  EXPECT_FALSE(rule.is_over(3, 59.9));
  EXPECT_TRUE(rule.is_over(3, 60));
  EXPECT_EQ(rule.end_after(3), RunEnd::kTimeBudget);
  EXPECT_EQ(rule.end_after(10), RunEnd::kFinished);
}

TEST(StopRule, TheNextStepAndItsCheckpointMustFitIntoTheTimeLimit) {
  const StopRule rule{.steps = 10, .time_limit = 60};
  EXPECT_FALSE(rule.is_out_of_time(50, 9.5));
  EXPECT_TRUE(rule.is_out_of_time(50, 10));
  EXPECT_FALSE(rule.is_over(3, 61)) << "a run that is out of time goes on another day";
}

}  // namespace
}  // namespace lockstep::train
