#include "dist/transport/pacing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

TEST(SleepPolicy, IsShortUntilEventsHaveComeBeforeMessages) {
  SleepPolicy policy;
  EXPECT_LE(policy.longest(true), 1ms);
  for (int i = 0; i < 20; ++i) {
    policy.slept(SleepPolicy::End::kEvent);
    policy.ended();
  }
  EXPECT_GE(policy.longest(true), 50ms);
  policy.slept(SleepPolicy::End::kTime);
  EXPECT_GE(policy.longest(true), 50ms) << "nothing was missed";
  policy.slept(SleepPolicy::End::kTime);
  policy.ended();
  EXPECT_LE(policy.longest(true), 1ms) << "a message came without an event";
}

TEST(SleepPolicy, GrowsWhileNothingComesAndStartsAnewWhenSomethingDid) {
  SleepPolicy policy;
  policy.slept(SleepPolicy::End::kTime);
  policy.ended();
  const auto least = policy.longest(true);
  policy.slept(SleepPolicy::End::kTime);
  EXPECT_EQ(policy.longest(true), 2 * least);
  for (int i = 0; i < 20; ++i) policy.slept(SleepPolicy::End::kTime);
  EXPECT_LE(policy.longest(true), 1ms);
  policy.ended();
  EXPECT_EQ(policy.longest(true), least);
}

TEST(SleepPolicy, OneThatSomebodyElseEndedTellsNothing) {
  SleepPolicy policy;
  const auto before = policy.longest(true);
  policy.slept(SleepPolicy::End::kOther);
  policy.ended();
  policy.ended();
  EXPECT_EQ(policy.longest(true), before);
}

/// Simulates a sleep during which `ended` bytes completed, with many messages pending.
std::chrono::microseconds sleep(RestPolicy& policy, size_t ended) {
  policy.adapt();
  const auto rest = policy.rest(32);
  policy.start(rest.count() > 0);
  if (ended > 0) policy.ended(ended);
  return rest;
}

TEST(RestPolicy, RestsOnlyWhileMuchMoves) {
  RestPolicy policy;
  EXPECT_EQ(sleep(policy, 1000), 0us) << "nothing had moved";
  EXPECT_GT(sleep(policy, 0), 0us);
  EXPECT_EQ(sleep(policy, 0), 0us) << "nothing moved any more";
  policy.ended(1000);
  EXPECT_EQ(policy.rest(1), 0us) << "little is pending";
}

TEST(RestPolicy, RestsLongerOverASlowNetworkThanOverAFastOne) {
  // Simulates a link with this many bytes per millisecond, both directions together.
  const auto rest_at = [](size_t bytes_per_ms) {
    RestPolicy policy;
    sleep(policy, 1);
    std::chrono::microseconds rest{100};
    for (int i = 0; i < 50; ++i) {
      rest = sleep(policy, 1 + bytes_per_ms * static_cast<size_t>(rest.count()) / 1000);
    }
    return rest;
  };
  EXPECT_EQ(rest_at(240'000), 2ms);      // 1 Gbit/s
  EXPECT_GE(rest_at(2'400'000), 100us);  // 10 Gbit/s
  EXPECT_LE(rest_at(2'400'000), 800us);
  EXPECT_LE(rest_at(100'000'000), 50us);
}

}  // namespace
}  // namespace lockstep::dist
