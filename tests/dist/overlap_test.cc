#include "dist/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::dist {
namespace {

TEST(BestSchedule, WithoutCommunicationIsTheComputation) {
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {}, .backward_end = 3, .tail = 1}, {}), 4);
  EXPECT_DOUBLE_EQ(
      best_schedule({.ready = {1, 2}, .backward_end = 3, .tail = 1}, {.seconds = {0, 0}}), 4);
}

TEST(BestSchedule, HidesWhatIsReadyInTime) {
  EXPECT_DOUBLE_EQ(
      best_schedule({.ready = {1, 2}, .backward_end = 4, .tail = 0.5}, {.seconds = {1, 1}}), 4.5);
}

TEST(BestSchedule, TheLastBucketComesAfterBackward) {
  EXPECT_DOUBLE_EQ(
      best_schedule({.ready = {1, 4}, .backward_end = 4, .tail = 0}, {.seconds = {1, 0.25}}), 4.25);
}

TEST(BestSchedule, ALinkThatIsTooSlowIsBusyFromTheFirstBucketOn) {
  EXPECT_DOUBLE_EQ(
      best_schedule({.ready = {1, 2, 3}, .backward_end = 3, .tail = 1}, {.seconds = {5, 5, 5}}),
      17);
}

TEST(BestSchedule, WaitsForNoBucketThatTheLinkReachesLate) {
  EXPECT_DOUBLE_EQ(
      best_schedule({.ready = {1, 2, 8}, .backward_end = 8, .tail = 0}, {.seconds = {5, 5, 1}}),
      12);
}

TEST(BestSchedule, StolenProcessorTimeMakesBackwardLonger) {
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1}, .backward_end = 4, .tail = 1},
                                 {.seconds = {1}, .stolen_cpu = 0.5}),
                   5.5);
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1}, .backward_end = 4, .tail = 1},
                                 {.seconds = {9}, .stolen_cpu = 0.5}),
                   11)
      << "not where the link takes longer";
}

TEST(ExplainExposure, NamesWhatKeptABucket) {
  const std::vector<MeasuredBucket> buckets = {
      {.ready = 1, .all_ready = 1, .done = 2, .alone = 1},       // ended in time
      {.ready = 2, .all_ready = 6, .done = 12, .alone = 5},      // the other rank came at 6
      {.ready = 3, .all_ready = 3, .done = 14, .alone = 2},      // the link was busy until 12
      {.ready = 9.5, .all_ready = 9.5, .done = 15, .alone = 1},  // ready too late
  };
  EXPECT_THAT(explain_exposure(buckets, 10),
              testing::ElementsAre(Exposure::kHidden, Exposure::kSlowRank, Exposure::kSlowLink,
                                   Exposure::kLateBucket));
  EXPECT_THAT(
      explain_exposure(
          std::vector<MeasuredBucket>{{.ready = 1, .all_ready = 1, .done = 12, .alone = 2}}, 10),
      testing::ElementsAre(Exposure::kProcessor));
}

}  // namespace
}  // namespace lockstep::dist
