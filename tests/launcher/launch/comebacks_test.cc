#include "launcher/launch/comebacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Comebacks::Clock::time_point kStart{};

LaunchFailure lost(int rank) { return {.rank = rank, .host = "", .signal = 9, .text = ""}; }

TEST(Comebacks, StartARankOnceWhenItsWaitIsOver) {
  Comebacks comebacks(3, 2.5);
  EXPECT_EQ(comebacks.next(), std::nullopt);
  EXPECT_EQ(comebacks.after(lost(1), 0, kStart),
            "rank 1 is started again in 2.5 s, to join the others (1 of 3)");
  EXPECT_EQ(comebacks.next(), kStart + 2500ms);
  EXPECT_THAT(comebacks.take_due(kStart + 2499ms), IsEmpty());
  EXPECT_THAT(comebacks.take_due(kStart + 2500ms), ElementsAre(1));
  EXPECT_THAT(comebacks.take_due(kStart + 1h), IsEmpty());
  EXPECT_EQ(comebacks.next(), std::nullopt);
}

TEST(Comebacks, WaitTwiceAsLongAfterEachLossUntilTheBudgetIsSpent) {
  Comebacks comebacks(2, 1);
  (void)comebacks.after(lost(0), 7, kStart);
  EXPECT_EQ(comebacks.after(lost(0), 7, kStart),
            "rank 0 is started again in 2 s, to join the others (2 of 2)");
  (void)comebacks.take_due(kStart + 2s);
  EXPECT_EQ(comebacks.after(lost(0), 7, kStart),
            "rank 0 stays out: it was started again 2 times without a new checkpoint");
  EXPECT_EQ(comebacks.next(), std::nullopt);
}

TEST(Comebacks, ACheckpointSinceTheLossBeforeGivesTheWholeBudgetAgain) {
  Comebacks comebacks(1, 1);
  (void)comebacks.after(lost(0), 7, kStart);
  EXPECT_EQ(comebacks.after(lost(0), 8, kStart),
            "rank 0 is started again in 1 s, to join the others (1 of 1)");
  EXPECT_EQ(comebacks.after(lost(0), 8, kStart),
            "rank 0 stays out: it was started again 1 time without a new checkpoint");
}

TEST(Comebacks, EachRankHasABudgetAndAWaitOfItsOwn) {
  Comebacks comebacks(1, 1);
  (void)comebacks.after(lost(2), 0, kStart);
  (void)comebacks.after(lost(1), 0, kStart + 500ms);
  EXPECT_EQ(comebacks.next(), kStart + 1s);
  EXPECT_THAT(comebacks.take_due(kStart + 1s), ElementsAre(2));
  EXPECT_EQ(comebacks.next(), kStart + 1500ms);
  (void)comebacks.after(lost(2), 0, kStart + 2s);
  EXPECT_THAT(comebacks.take_due(kStart + 2s), ElementsAre(1));
}

TEST(Comebacks, WithoutRestartsNothingIsStartedOrSaid) {
  Comebacks comebacks(0, 1);
  EXPECT_EQ(comebacks.after(lost(0), 0, kStart), "");
  EXPECT_EQ(comebacks.next(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::launcher
