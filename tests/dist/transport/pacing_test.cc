#include "dist/transport/pacing.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

TEST(Nap, IsShortUntilEventsHaveComeBeforeMessages) {
  Nap nap;
  EXPECT_LE(nap.longest(true), 1ms);
  for (int i = 0; i < 20; ++i) {
    nap.slept(Nap::End::kEvent);
    nap.ended();
  }
  EXPECT_GE(nap.longest(true), 50ms);
  nap.slept(Nap::End::kTime);
  EXPECT_GE(nap.longest(true), 50ms) << "nothing was missed";
  nap.slept(Nap::End::kTime);
  nap.ended();
  EXPECT_LE(nap.longest(true), 1ms) << "a message came without an event";
}

TEST(Nap, GrowsWhileNothingComesAndStartsAnewWhenSomethingDid) {
  Nap nap;
  nap.slept(Nap::End::kTime);
  nap.ended();
  const auto least = nap.longest(true);
  nap.slept(Nap::End::kTime);
  EXPECT_EQ(nap.longest(true), 2 * least);
  for (int i = 0; i < 20; ++i) nap.slept(Nap::End::kTime);
  EXPECT_LE(nap.longest(true), 1ms);
  nap.ended();
  EXPECT_EQ(nap.longest(true), least);
}

TEST(Nap, OneThatSomebodyElseEndedTellsNothing) {
  Nap nap;
  const auto before = nap.longest(true);
  nap.slept(Nap::End::kOther);
  nap.ended();
  nap.ended();
  EXPECT_EQ(nap.longest(true), before);
}

/// Simulates a sleep during which `ended` bytes completed, with many messages pending.
std::chrono::microseconds sleep(Pace& pace, size_t ended) {
  pace.adapt();
  const auto rest = pace.rest(32);
  pace.start(rest.count() > 0);
  if (ended > 0) pace.ended(ended);
  return rest;
}

TEST(Pace, RestsOnlyWhileMuchMoves) {
  Pace pace;
  EXPECT_EQ(sleep(pace, 1000), 0us) << "nothing had moved";
  EXPECT_GT(sleep(pace, 0), 0us);
  EXPECT_EQ(sleep(pace, 0), 0us) << "nothing moved any more";
  pace.ended(1000);
  EXPECT_EQ(pace.rest(1), 0us) << "little is pending";
}

TEST(Pace, RestsLongerOverASlowNetworkThanOverAFastOne) {
  // Simulates a link with this many bytes per millisecond, both directions together.
  const auto rest_at = [](size_t bytes_per_ms) {
    Pace pace;
    sleep(pace, 1);
    std::chrono::microseconds rest{100};
    for (int i = 0; i < 50; ++i) {
      rest = sleep(pace, 1 + bytes_per_ms * static_cast<size_t>(rest.count()) / 1000);
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
