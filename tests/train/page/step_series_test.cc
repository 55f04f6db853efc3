#include "train/page/step_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::train {
namespace {

using Point = StepSeries::Point;
using testing::ElementsAre;

TEST(StepSeries, KeepsEveryValueThatFits) {
  StepSeries series(100);
  for (int64_t step = 1; step <= 40; ++step) series.add(step, 1.0 / static_cast<double>(step));
  const std::vector<Point> points = series.points();
  ASSERT_EQ(points.size(), 40u);
  for (const Point& point : points) {
    EXPECT_EQ(point.value, 1.0 / static_cast<double>(point.step));
  }
}

TEST(StepSeries, KeepsFirstLastAndExtremesOfManyValuesInBoundedMemory) {
  StepSeries series(64);
  for (int64_t step = 1; step <= 100'000; ++step) {
    series.add(step, step == 31'337   ? 9.0
                     : step == 77'777 ? -9.0
                                      : std::sin(static_cast<double>(step)));
  }
  const std::vector<Point> points = series.points();
  EXPECT_LE(points.size(), 66u);
  EXPECT_EQ(points.front(), (Point{1, std::sin(1.0)}));
  EXPECT_EQ(points.back(), (Point{100'000, std::sin(100'000.0)}));
  EXPECT_THAT(points, testing::Contains(Point{31'337, 9.0}));
  EXPECT_THAT(points, testing::Contains(Point{77'777, -9.0}));
  EXPECT_EQ(series.largest(), (Point{31'337, 9.0}));
  EXPECT_EQ(series.smallest(), (Point{77'777, -9.0}));
  EXPECT_EQ(series.count(), 100'000);
  for (size_t i = 1; i < points.size(); ++i) EXPECT_LT(points[i - 1].step, points[i].step);
}

TEST(StepSeries, NothingOfDroppedStepsIsLeft) {
  for (const int64_t dropped : {1, 2, 500, 999, 1000}) {
    StepSeries series(16);
    for (int64_t step = 1; step <= 1000; ++step) series.add(step, static_cast<double>(step));
    series.drop_after(dropped);
    ASSERT_FALSE(series.empty()) << dropped;
    EXPECT_LE(series.last().step, dropped);
    EXPECT_LE(series.largest().value, static_cast<double>(dropped));
    EXPECT_EQ(series.first(), (Point{1, 1.0}));
    series.add(dropped + 1, 0.5);
    EXPECT_EQ(series.last(), (Point{dropped + 1, 0.5}));
  }
  StepSeries series(16);
  series.add(5, 1);
  series.drop_after(4);
  EXPECT_TRUE(series.empty());
  EXPECT_THAT(series.points(), ElementsAre());
}

TEST(StepSeries, ALaterAttemptReplacesTheStepsItMakesAgain) {
  StepSeries series;
  for (int64_t step = 1; step <= 6; ++step) series.add(step, 1);
  for (int64_t step = 4; step <= 5; ++step) series.add(step, 2);
  EXPECT_THAT(series.points(),
              ElementsAre(Point{1, 1}, Point{2, 1}, Point{3, 1}, Point{4, 2}, Point{5, 2}));
}

TEST(StepSeries, ValuesThatAreNotFiniteAreCountedAndLeftOut) {
  StepSeries series;
  series.add(1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(series.empty());
  series.add(2, 3);
  series.add(3, std::numeric_limits<double>::infinity());
  EXPECT_THAT(series.points(), ElementsAre(Point{2, 3}));
  EXPECT_EQ(series.not_finite(), 2);
}

TEST(StepSeries, NeighboursShareABucketOnceThereAreTooMany) {
  StepSeries series(8);  // 4 buckets
  for (int64_t step = 1; step <= 5; ++step) series.add(step, static_cast<double>(step % 2));
  EXPECT_THAT(series.points(),
              ElementsAre(Point{1, 1}, Point{2, 0}, Point{3, 1}, Point{4, 0}, Point{5, 1}));
  for (int64_t step = 6; step <= 9; ++step) series.add(step, static_cast<double>(step));
  EXPECT_THAT(series.points(),
              ElementsAre(Point{1, 1}, Point{2, 0}, Point{5, 1}, Point{8, 8}, Point{9, 9}));
  EXPECT_EQ(series.count(), 9);
}

TEST(StepSeries, OfEqualExtremesTheEarliestIsTold) {
  StepSeries series;
  for (const double value : {2.0, 1.0, 3.0, 1.0, 3.0, 2.0}) {
    series.add(series.empty() ? 1 : series.last().step + 1, value);
  }
  EXPECT_EQ(series.smallest(), (Point{2, 1}));
  EXPECT_EQ(series.largest(), (Point{3, 3}));
}

TEST(StepSeries, OfABucketWhatIsKnownBeforeTheDroppedStepsStays) {
  StepSeries rising(4), falling(4);
  for (int64_t step = 1; step <= 8; ++step) {
    rising.add(step, static_cast<double>(step));
    falling.add(step, static_cast<double>(-step));
  }
  rising.drop_after(7);  // of 5 to 8 only the ends are known
  EXPECT_THAT(rising.points(), ElementsAre(Point{1, 1}, Point{4, 4}, Point{5, 5}));
  EXPECT_EQ(rising.last(), (Point{5, 5}));
  falling.drop_after(7);
  EXPECT_THAT(falling.points(), ElementsAre(Point{1, -1}, Point{4, -4}, Point{5, -5}));
  falling.drop_after(5);
  EXPECT_EQ(falling.last(), (Point{5, -5})) << "nothing is after that step";
}

}  // namespace
}  // namespace lockstep::train
