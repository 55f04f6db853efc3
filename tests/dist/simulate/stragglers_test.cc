#include "dist/simulate/stragglers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::dist {
namespace {

TEST(NormalQuantile, IsThatOfTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959964, 1e-6);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424, 1e-6);
}

TEST(SlowestFactor, IsOneWithoutStragglersAndForOneRank) {
  EXPECT_EQ(slowest_factor({}, 1000, 100), 1);
  EXPECT_EQ(slowest_factor({.deviation = 0.1}, 1, 1), 1);
}

TEST(SlowestFactor, IsTheMeanOfTheSlowestOfManyDraws) {
  std::mt19937 random(1);
  std::normal_distribution<double> time(1, 0.05);
  for (const int ranks : {2, 8, 64, 1024}) {
    constexpr int kSteps = 2000;
    double sum = 0;
    for (int step = 0; step < kSteps; ++step) {
      double slowest = 0;
      for (int rank = 0; rank < ranks; ++rank) slowest = std::max(slowest, time(random));
      sum += slowest;
    }
    EXPECT_NEAR(slowest_factor({.deviation = 0.05}, ranks, 1), sum / kSteps, 0.003) << ranks;
  }
}

TEST(SlowestFactor, GrowsWithRanksUpToThatOfASlowHost) {
  const Stragglers some{.slow_hosts = 0.01, .slow_factor = 1.5};
  double before = 1;
  for (int64_t hosts = 1; hosts <= 4096; hosts *= 2) {
    const double factor = slowest_factor(some, hosts, hosts);
    EXPECT_GE(factor, before);
    before = factor;
  }
  EXPECT_NEAR(before, 1.5, 1e-6);
}

}  // namespace
}  // namespace lockstep::dist
