#include <gtest/gtest.h>

#include "dist/simulate/collective_cost.h"
#include "dist/simulate/simulated_step.h"

namespace lockstep::dist {
namespace {

/// Eight matrices of 256 x 256, in a step of 10 ms.
StepWork small_work() {
  StepWork work;
  work.root = {.name = "", .forward = 3e-3, .backward = 6e-3, .parameters = {}};
  for (int i = 0; i < 8; ++i) {
    work.root.parameters.push_back({.elements = 65'536, .is_matrix = true, .ready = 1e-3});
  }
  work.update = 1e-3;
  return work;
}

/// Four hosts with a rank each, at 10 Mbit/s.
Cluster slow_hosts() {
  return {.hosts = 4,
          .inside = {},
          .between = {.bytes_per_second = 1.25e6, .latency = 1e-3},
          .collectives = Collectives::kHierarchical};
}

/// Seconds for which the link is used by an average of all parameters in 8 bits.
double link_seconds() {
  const double coded = 8 * 65'536 / 256 * (256 + 4);
  return 2 * coded * 3 / 4 / 1.25e6;
}

double losses_seconds() {
  return collective_cost(OpKind::kAllReduce, sizeof(double), world_of(slow_hosts()), slow_hosts())
      .seconds();
}

TEST(SimulatedLocalSteps, OfOneRankAreItsComputation) {
  const SimulatedStep step = simulate_local_steps(small_work(), {}, {});
  EXPECT_DOUBLE_EQ(step.seconds, 10e-3);
  EXPECT_EQ(step.sent_bytes, 0);
}

TEST(SimulatedLocalSteps, WaitForAnAverageOnceInAPeriod) {
  for (const int64_t period : {1, 5, 50}) {
    const SimulatedStep step =
        simulate_local_steps(small_work(), slow_hosts(), {.inner_steps = period, .bits = 8});
    // The two messages have a latency each.
    const double average = link_seconds() + 2e-3;
    EXPECT_NEAR(step.seconds, 10e-3 + losses_seconds() + average / static_cast<double>(period),
                1e-9);
    EXPECT_NEAR(step.sent_bytes * static_cast<double>(period), link_seconds() * 1.25e6, 1);
  }
}

TEST(SimulatedLocalSteps, CodesGoToTheirOwnersDirectlyAndCostTheProcessorEachWay) {
  Cluster cluster = slow_hosts();
  cluster.ranks_per_host = 2;
  cluster.inside = {.bytes_per_second = 1e9, .latency = 1e-6};
  cluster.cpu_per_byte = 1e-8;
  Cluster direct = cluster;
  direct.collectives = Collectives::kDirect;
  const double bytes = 8 * 65'536 / 256 * (256 + 4);
  const GroupShape world = world_of(cluster);
  const CollectiveCost there = collective_cost(OpKind::kReduceScatter, bytes, world, direct);
  const CollectiveCost back = collective_cost(OpKind::kAllGather, bytes, world, cluster);
  EXPECT_GT(there.link, 1.5 * back.link) << "no host adds up for its ranks";
  const double losses =
      collective_cost(OpKind::kAllReduce, sizeof(double), world, cluster).seconds();
  const SimulatedStep step =
      simulate_local_steps(small_work(), cluster, {.inner_steps = 5, .bits = 8});
  const double average = there.seconds() + there.cpu + back.seconds() + back.cpu;
  EXPECT_NEAR(step.seconds, 10e-3 + losses + average / 5, 1e-9);
}

TEST(SimulatedLocalSteps, FewerBitsTakeLess) {
  const auto seconds = [](int bits) {
    return simulate_local_steps(small_work(), slow_hosts(), {.inner_steps = 10, .bits = bits})
        .exposed;
  };
  EXPECT_NEAR(seconds(32) / seconds(8), 4, 0.2);
  EXPECT_NEAR(seconds(8) / seconds(4), 2, 0.1);
}

TEST(SimulatedLocalSteps, AreHiddenByADelayThatIsAsLongAsTheMessages) {
  const auto exposed = [](int64_t delay) {
    return simulate_local_steps(small_work(), slow_hosts(),
                                {.inner_steps = 200, .delay_steps = delay})
               .seconds -
           10e-3 - losses_seconds();
  };
  const auto steps = static_cast<int64_t>(link_seconds() / 10e-3);
  EXPECT_NEAR(exposed(2 * steps), 0, 1e-9);
  EXPECT_GT(exposed(steps / 2), 0);
  EXPECT_LT(exposed(steps / 2), exposed(0));
}

TEST(SimulatedLocalSteps, FragmentsInTurnHideWhatOneWouldNot) {
  const auto exposed = [](int64_t fragments) {
    return simulate_local_steps(small_work(), slow_hosts(),
                                {.inner_steps = 160, .fragments = fragments, .delay_steps = 16})
        .exposed;
  };
  EXPECT_GT(exposed(1), 2 * exposed(8));
  EXPECT_NEAR(exposed(8), losses_seconds(), 1e-9);
}

TEST(SimulatedLocalSteps, TakeAtLeastAsLongAsTheLinkNeeds) {
  const SimulatedStep step = simulate_local_steps(
      small_work(), slow_hosts(), {.inner_steps = 10, .fragments = 5, .delay_steps = 9});
  EXPECT_GE(step.seconds, 0.999 * link_seconds() / 10);
  EXPECT_LT(step.seconds, 1.3 * link_seconds() / 10);
}

TEST(SimulatedLocalSteps, OfThousandsOfRanksAndStepsAreSoonPredicted) {
  Cluster cluster = slow_hosts();
  cluster.hosts = 4096;
  const SimulatedStep step = simulate_local_steps(
      small_work(), cluster, {.inner_steps = 1'000'000, .fragments = 8, .delay_steps = 100'000});
  EXPECT_GT(step.seconds, 10e-3);
}

}  // namespace
}  // namespace lockstep::dist
