#include "dist/ddp/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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
                                 {.seconds = {1}, .stolen_cpu = {0.5}}),
                   5.5);
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1}, .backward_end = 4, .tail = 1},
                                 {.seconds = {9}, .stolen_cpu = {0.5}}),
                   11)
      << "not where the link takes longer";
}

TEST(BestSchedule, ABucketIsReadyLaterByWhatThoseBeforeItTookOfTheProcessor) {
  // 4 s of computation, 2 x 0.5 s of CPU time for the first two buckets, then the third's transfer.
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1, 2, 4}, .backward_end = 4, .tail = 1},
                                 {.seconds = {1, 1, 1}, .stolen_cpu = {0.5, 0.5, 0.5}}),
                   4 + 1 + 1 + 1);
}

TEST(BestSchedule, NoBucketDelaysLaterOnesByMoreThanItsTurnOnTheLink) {
  // The first bucket could wait until the second is ready, and be transferred just before it.
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1, 4}, .backward_end = 4, .tail = 0},
                                 {.seconds = {0.25, 2}, .stolen_cpu = {1, 0.5}}),
                   4 + 0.25 + 2);
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1, 4}, .backward_end = 4, .tail = 0},
                                 {.seconds = {0.25, 1}, .stolen_cpu = {1, 1}}),
                   6)
      << "all of the processor's work is done all the same";
}

TEST(BestSchedule, LatencyComesOnceAfterTheLastBucket) {
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1, 4}, .backward_end = 4, .tail = 1},
                                 {.seconds = {1, 1}, .stolen_cpu = {}, .latency = 0.5}),
                   6.5);
  EXPECT_DOUBLE_EQ(best_schedule({.ready = {1, 2}, .backward_end = 4, .tail = 1},
                                 {.seconds = {1, 1}, .stolen_cpu = {}, .latency = 0.5}),
                   5);
}

/// Simulates a step in small time slices, with a random policy for the core: it either computes or
/// communicates. While it communicates, the oldest bucket is transferred; the link alone can only
/// transfer the share that the core has already worked for.
double simulate(const StepProfile& step, const LinkProfile& link, std::mt19937& random) {
  constexpr double kSlice = 1e-3;
  double now = 0;
  double computed = 0;
  size_t paying = 0;    // bucket that the core communicates
  double paid = 0;      // fraction of it done by the core
  size_t crossing = 0;  // bucket on the link
  double crossed = 0;   // fraction of it transferred
  const size_t count = step.ready.size();
  double taste = 0.5;
  while (computed < step.backward_end || crossing < count) {
    if (random() % 50 == 0) taste = static_cast<double>(random() % 101) / 100;
    const bool is_ready = paying < count && computed >= step.ready[paying];
    const bool may_compute = computed < step.backward_end;
    const bool pays =
        is_ready && (!may_compute || static_cast<double>(random() % 1000) / 1000 < taste);
    if (pays) {
      paid += link.stolen_cpu[paying] > 0 ? kSlice / link.stolen_cpu[paying] : 1;
      if (paid >= 1) {
        paid = 0;
        ++paying;
      }
    } else if (may_compute) {
      computed += kSlice;
    }
    if (crossing < count && (crossing < paying || (crossing == paying && crossed < paid))) {
      crossed += kSlice / link.seconds[crossing];
      if (crossing == paying) crossed = std::min(crossed, paid);
      if (crossed >= 1) {
        crossed = 0;
        ++crossing;
      }
    }
    now += kSlice;
  }
  return now + step.tail;
}

TEST(BestSchedule, NoPolicyOfACoreAndALinkIsFaster) {
  std::mt19937 random(11);
  const auto number = [&](double most) {
    return static_cast<double>(random() % 1000 + 1) * most / 1000;
  };
  for (int i = 0; i < 300; ++i) {
    StepProfile step{.ready = {}, .backward_end = number(2), .tail = number(0.1)};
    LinkProfile link;
    for (size_t b = random() % 5 + 1; b > 0; --b) {
      step.ready.push_back(step.backward_end * number(1));
      link.seconds.push_back(number(0.5));
      link.stolen_cpu.push_back(number(i % 2 == 0 ? 0.5 : 0.1));
    }
    std::ranges::sort(step.ready);
    // Allows for rounding to whole slices at each change of bucket.
    ASSERT_GE(simulate(step, link, random), best_schedule(step, link) - 0.02) << "case " << i;
  }
}

TEST(ExplainExposure, NamesWhatKeptABucket) {
  const std::vector<MeasuredBucket> buckets = {
      {.ready = 1, .all_ready = 1, .done = 2, .alone = 1},       // done before backward ended
      {.ready = 2, .all_ready = 6, .done = 12, .alone = 5},      // the other rank was ready at 6
      {.ready = 3, .all_ready = 3, .done = 14, .alone = 2},      // link busy until 12
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

TEST(ExplainExposure, TheLinkIsBusyUntilAllBucketsBeforeAreDoneInWhateverOrder) {
  const std::vector<MeasuredBucket> buckets = {
      {.ready = 1, .all_ready = 1, .done = 12, .alone = 2},
      {.ready = 1.5, .all_ready = 1.5, .done = 2, .alone = 0.2},  // overtakes the first
      {.ready = 3, .all_ready = 3, .done = 14, .alone = 2},       // waits for the first
  };
  EXPECT_THAT(explain_exposure(buckets, 10),
              testing::ElementsAre(Exposure::kProcessor, Exposure::kHidden, Exposure::kSlowLink));
}

}  // namespace
}  // namespace lockstep::dist
