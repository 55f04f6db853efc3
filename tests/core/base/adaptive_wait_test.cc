#include "core/base/adaptive_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Clock = PollLimit::Clock;

constexpr Clock::time_point kStart{1h};

TEST(PollLimit, RisesWherePollingWouldHaveSparedASleepAndFallsWhereNot) {
  PollLimit limit;
  for (int i = 0; i < 10; ++i) limit.slept(PollLimit::kMost, kStart);
  EXPECT_EQ(limit.value(), PollLimit::kMost);
  limit.slept(PollLimit::kMost + 1ns, kStart);
  EXPECT_EQ(limit.value(), PollLimit::kMost / 2);
  for (int i = 0; i < 20; ++i) limit.slept(1s, kStart);
  EXPECT_EQ(limit.value(), PollLimit::kLeast);
  limit.slept(50us, kStart);
  EXPECT_EQ(limit.value(), 2 * PollLimit::kLeast);
}

TEST(PollLimit, StaysLowForAWhileAfterTheCoreWasLost) {
  PollLimit limit;
  limit.lost_core(kStart);
  EXPECT_EQ(limit.value(), PollLimit::kLeast);
  limit.slept(10us, kStart + 9ms);
  EXPECT_EQ(limit.value(), PollLimit::kLeast);
  limit.slept(10us, kStart + 10ms);
  EXPECT_EQ(limit.value(), 2 * PollLimit::kLeast);
}

TEST(PollLimit, StaysLowForLongerWhereTheCoreIsLostAgainAndAgain) {
  /// Time for which the limit stays at its minimum after a lost core at `now`.
  const auto time_low = [](PollLimit limit, Clock::time_point now) {
    limit.lost_core(now);
    Clock::duration time = 0ms;
    while (limit.value() == PollLimit::kLeast) limit.slept(10us, now + (time += 10ms));
    return time;
  };
  PollLimit limit;
  Clock::time_point now = kStart;
  for (const auto expected : {10ms, 20ms, 40ms, 80ms, 160ms, 160ms}) {
    EXPECT_EQ(time_low(limit, now), expected);
    limit.lost_core(now);
    now += expected + 5ms;
  }
  EXPECT_EQ(time_low(limit, now + 1s), 10ms) << "long ago";
}

TEST(AdaptiveWait, DoesNotSleepWhereTheWaitIsShort) {
  AdaptiveWait wait;
  int polls = 0;
  int sleeps = 0;
  for (int i = 0; i < 100; ++i) {
    wait.until([&] { return ++polls % 10 == 0; }, [&] { ++sleeps; });
  }
  EXPECT_EQ(polls, 1000);
  EXPECT_EQ(sleeps, 0);
}

TEST(AdaptiveWait, SleepsWherePollingDoesNotHelpUntilItIsReady) {
  AdaptiveWait wait;
  int sleeps = 0;
  wait.until([&] { return sleeps == 3; }, [&] { ++sleeps; });
  EXPECT_EQ(sleeps, 3);
}

TEST(AdaptiveWait, WakesThreadsThatSleepOnAWord) {
  std::atomic<uint32_t> turn = 0;
  const auto take_turns = [&](uint32_t mine) {
    AdaptiveWait wait;
    for (uint32_t i = mine; i < 200; i += 2) {
      // Makes some turns longer than a thread polls, so that it sleeps.
      if (i % 10 == 0) std::this_thread::sleep_for(1ms);
      wait.until([&] { return turn == i; },
                 [&] {
                   const uint32_t now = turn;
                   if (now != i) sleep_while(turn, now);
                 });
      turn = i + 1;
      wake_one(turn);
    }
  };
  std::thread other(take_turns, 1);
  take_turns(0);
  other.join();
  EXPECT_EQ(turn, 200u);
}

}  // namespace
}  // namespace lockstep
