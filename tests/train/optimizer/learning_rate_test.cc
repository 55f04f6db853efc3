#include "train/optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::train {
namespace {

TEST(LearningRateSchedule, WarmUpRisesLinearlyToThePeak) {
  const LearningRateSchedule schedule{.peak = 1.0, .warmup_steps = 4, .decay_steps = 10};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(3), 1.0);
}

TEST(LearningRateSchedule, TheCosineEndsAtTheMinimumAndStaysThere) {
  const LearningRateSchedule schedule{
      .peak = 2.0, .warmup_steps = 0, .decay_steps = 10, .minimum_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 2.0);
  EXPECT_NEAR(schedule.learning_rate(5), 0.2 + 0.5 * 1.8, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1000), 0.2);
}

TEST(LearningRateSchedule, ConstantKeepsThePeak) {
  const LearningRateSchedule schedule{.kind = LearningRateSchedule::Kind::kConstant,
                                      .peak = 0.5,
                                      .warmup_steps = 2,
                                      .decay_steps = 3};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(100), 0.5);
}

TEST(LearningRateSchedule, ALineFallsFromTheEndOfWarmUp) {
  const LearningRateSchedule schedule{.kind = LearningRateSchedule::Kind::kLinear,
                                      .peak = 2.0,
                                      .warmup_steps = 2,
                                      .decay_steps = 12,
                                      .minimum_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(7), 0.2 + 0.5 * 1.8);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(12), 0.2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(99), 0.2);
}

TEST(LearningRateSchedule, WsdIsStableUntilItsCooldown) {
  LearningRateSchedule schedule{.kind = LearningRateSchedule::Kind::kWsd,
                                .peak = 2.0,
                                .warmup_steps = 2,
                                .decay_steps = 30,
                                .cooldown_steps = 16,
                                .minimum_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(14), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(18), 0.2 + 0.5 * 1.8);  // a quarter done
  EXPECT_DOUBLE_EQ(schedule.learning_rate(23), 0.2 + 0.25 * 1.8);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(30), 0.2);
  schedule.cooldown_steps = 0;
  EXPECT_DOUBLE_EQ(schedule.learning_rate(29), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(30), 0.2);
  schedule.cooldown_steps = 99;  // begins with the end of warm-up
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(9), 0.2 + 0.5 * 1.8);
}

TEST(LearningRateSchedule, TheInverseSquareRootFallsFromTheEndOfWarmUpAndCoolsDown) {
  LearningRateSchedule schedule{.kind = LearningRateSchedule::Kind::kInverseSqrt,
                                .peak = 2.0,
                                .warmup_steps = 4,
                                .decay_steps = 80,
                                .cooldown_steps = 16,
                                .minimum_ratio = 0.1};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(3), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(15), 1.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(63), 0.5);
  const double begun = 2.0 * std::sqrt(4.0 / 65);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(64), begun);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(68), 0.2 + 0.5 * (begun - 0.2));  // a quarter done
  EXPECT_DOUBLE_EQ(schedule.learning_rate(80), 0.2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(900), 0.2);
  schedule.warmup_steps = 0;
  schedule.minimum_ratio = 0.5;
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(63), 1.0) << "not below the minimum";
}

TEST(LearningRateSchedule, AWarmUpLongerThanTheRunIsAllowed) {
  const LearningRateSchedule schedule{.peak = 1.0, .warmup_steps = 100, .decay_steps = 5};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(4), 0.05);
}

}  // namespace
}  // namespace lockstep::train
