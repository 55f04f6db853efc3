#include "train/report/step_durations.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(StepDurations, PercentilesAreThoseOfTheValues) {
  StepDurations times;
  for (int i = 1000; i >= 1; --i) times.add(i);
  EXPECT_EQ(times.count(), 1000);
  EXPECT_NEAR(times.percentile(50), 500, 500 * 0.0051);
  EXPECT_NEAR(times.percentile(90), 900, 900 * 0.0051);
  EXPECT_NEAR(times.percentile(99), 990, 990 * 0.0051);
  EXPECT_EQ(times.percentile(0), 1);
  EXPECT_EQ(times.percentile(100), 1000);
}

TEST(StepDurations, OneStepIsEveryPercentile) {
  StepDurations times;
  times.add(12.5);
  for (const double percent : {0, 50, 99, 100}) EXPECT_EQ(times.percentile(percent), 12.5);
}

TEST(StepDurations, NothingMeasuredIsZero) { EXPECT_EQ(StepDurations().percentile(50), 0); }

TEST(StepDurations, TimesBeyondTheBucketsStayTheExtremes) {
  StepDurations times;
  times.add(1e-9);
  times.add(1e15);
  EXPECT_EQ(times.percentile(0), 1e-9);
  EXPECT_EQ(times.percentile(100), 1e15);
}

}  // namespace
}  // namespace lockstep::train
