#include "train/step_outcome.h"

#include <gtest/gtest.h>

#include "tests/core/non_finite.h"

namespace lockstep::train {
namespace {

constexpr OutcomeRule kScaled{.smallest_loss_scale = 0.25};

TEST(StepOutcome, AStepOfFiniteNumbersUpdates) {
  const StepOutcome outcome = outcome_of({.loss = 2, .grad_norm = 1}, {});
  EXPECT_TRUE(outcome.updated());
  EXPECT_EQ(outcome, StepOutcome{});
}

TEST(StepOutcome, WithoutALossScaleAnInfiniteNormIsNotFinite) {
  const StepOutcome outcome = outcome_of({.loss = 2, .grad_norm = kInfinity}, {});
  EXPECT_FALSE(outcome.finite);
  EXPECT_FALSE(outcome.overflowed);
  EXPECT_FALSE(outcome.updated());
}

TEST(StepOutcome, UnderALossScaleAnInfiniteNormIsAnOverflow) {
  const StepOutcome outcome =
      outcome_of({.loss = 2, .grad_norm = kInfinity, .loss_scale = 0.5}, kScaled);
  EXPECT_TRUE(outcome.overflowed);
  EXPECT_TRUE(outcome.finite);
  EXPECT_FALSE(outcome.updated());
}

TEST(StepOutcome, WhatOverflowsUnderTheSmallestScaleIsNotTheScalesFault) {
  const StepOutcome outcome =
      outcome_of({.loss = 2, .grad_norm = kInfinity, .loss_scale = 0.25}, kScaled);
  EXPECT_FALSE(outcome.overflowed);
  EXPECT_FALSE(outcome.finite);
}

TEST(StepOutcome, ALossThatIsNotFiniteIsNoOverflow) {
  const StepOutcome outcome =
      outcome_of({.loss = kNaN, .grad_norm = kInfinity, .loss_scale = 1024}, kScaled);
  EXPECT_FALSE(outcome.overflowed);
  EXPECT_FALSE(outcome.finite);
}

TEST(StepOutcome, OnlyAnEarlyUpdateThatIsNotFiniteSpoilsTheWeights) {
  const StepNumbers bad{.loss = kInfinity, .grad_norm = 1};
  EXPECT_FALSE(outcome_of(bad, {}).spoiled);
  EXPECT_TRUE(outcome_of(bad, {.updates_early = true}).spoiled);
  EXPECT_FALSE(outcome_of({.loss = 1, .grad_norm = 1}, {.updates_early = true}).spoiled);
}

}  // namespace
}  // namespace lockstep::train
