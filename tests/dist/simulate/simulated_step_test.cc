#include "dist/simulate/simulated_step.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dist/simulate/collective_cost.h"
#include "dist/simulate/step_limit.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

/// Layers of a million elements, 1 ms of forward and 2 ms of backward each; a classifier.
StepWork work_of(int layers, int64_t micro_batches = 1) {
  StepWork work;
  double backward = 0;
  const auto parameter = [&](int64_t elements, bool is_matrix) {
    return ParameterWork{.elements = elements, .is_matrix = is_matrix, .ready = backward};
  };
  backward += 1e-3;
  work.root = {.name = "", .forward = 0.5e-3, .backward = 1e-3, .parameters = {}};
  for (int i = layers; i-- > 0;) {
    UnitWork unit{.name = "", .forward = 1e-3, .backward = 2e-3, .parameters = {}};
    backward += 1e-3;
    unit.parameters.push_back(parameter(500'000, true));
    backward += 1e-3;
    unit.parameters.push_back(parameter(500'000, true));
    unit.parameters.push_back(parameter(1000, false));
    work.units.insert(work.units.begin(), std::move(unit));
  }
  work.root.parameters.push_back(parameter(2'000'000, true));
  work.micro_batches = micro_batches;
  work.update = 1e-3;
  return work;
}

Cluster cluster_of(int64_t hosts, int64_t local) {
  return {.hosts = hosts,
          .ranks_per_host = local,
          .inside = {.bytes_per_second = 50e9, .latency = 2e-6},
          .between = {.bytes_per_second = 5e9, .latency = 10e-6},
          .per_operation = 10e-6};
}

using Predict = std::function<SimulatedStep(const StepWork&, const Cluster&)>;

Predict sharded(ShardStrategy strategy, int64_t shard_size = 0) {
  return [=](const StepWork& work, const Cluster& cluster) {
    return simulate_sharded(work, cluster, {.strategy = strategy, .shard_size = shard_size});
  };
}

std::vector<Predict> all_strategies() {
  return {
      [](const StepWork& work, const Cluster& cluster) { return simulate_copies(work, cluster); },
      sharded(ShardStrategy::kFullShard), sharded(ShardStrategy::kShardGradOp),
      sharded(ShardStrategy::kShardOptimizer)};
}

TEST(SimulatedCopies, StragglersMakePassesLongerAndNotTheUpdateForWhichAllHaveWaited) {
  const StepWork work = work_of(3, 2);
  Cluster cluster = cluster_of(2, 1);
  cluster.between = {.bytes_per_second = 1e30, .latency = 0};
  cluster.per_operation = 0;
  cluster.stragglers = {.slow_hosts = 1, .slow_factor = 2};
  const SimulatedStep step = simulate_copies(work, cluster);
  EXPECT_NEAR(step.seconds, 2 * (work.seconds() - work.update) + work.update, 1e-12);
  EXPECT_NEAR(step.exposed, 0, 1e-12);
}

TEST(SimulatedStep, OfOneRankIsItsComputation) {
  const StepWork work = work_of(4, 3);
  for (const Predict& predict : all_strategies()) {
    const SimulatedStep step = predict(work, cluster_of(1, 1));
    EXPECT_DOUBLE_EQ(step.seconds, work.seconds());
    EXPECT_NEAR(step.exposed, 0, 1e-15);
    EXPECT_EQ(step.sent_bytes, 0);
  }
}

TEST(SimulatedStep, IsNeverShorterThanComputationHoweverManyRanks) {
  const StepWork work = work_of(6, 2);
  for (const Predict& predict : all_strategies()) {
    for (const auto& [hosts, local] :
         {std::pair<int64_t, int64_t>(1, 2), {1, 8}, {2, 8}, {64, 8}, {4096, 8}}) {
      const SimulatedStep step = predict(work, cluster_of(hosts, local));
      EXPECT_GE(step.exposed, 0);
      EXPECT_GE(step.seconds, step.compute);
      EXPECT_NEAR(step.seconds, step.compute + step.straggling + step.exposed, 1e-12);
    }
  }
}

TEST(SimulatedStep, IsNeverLongerWithMoreBandwidthOrLessLatency) {
  const StepWork work = work_of(6, 2);
  auto strategies = all_strategies();
  strategies.push_back(sharded(ShardStrategy::kHybridShard, 8));
  strategies.push_back(sharded(ShardStrategy::kHybridShard, 16));
  for (const Predict& predict : strategies) {
    for (const Collectives each : {Collectives::kDirect, Collectives::kRing,
                                   Collectives::kRingOrTree, Collectives::kHierarchical}) {
      Cluster cluster = cluster_of(16, 8);
      cluster.collectives = each;
      cluster.cpu_per_byte = 1e-10;
      double before = predict(work, cluster).seconds;
      for (int i = 0; i < 12; ++i) {
        double& changed = i % 3 == 0   ? cluster.between.bytes_per_second
                          : i % 3 == 1 ? cluster.inside.bytes_per_second
                                       : cluster.between.latency;
        changed *= i % 3 == 2 ? 0.5 : 1.7;
        const double now = predict(work, cluster).seconds;
        EXPECT_LE(now, before * (1 + 1e-12));
        before = now;
      }
    }
  }
}

TEST(SimulatedStep, ApproachesComputationOnAPerfectLink) {
  const StepWork work = work_of(6, 2);
  Cluster cluster = cluster_of(16, 8);
  cluster.inside = cluster.between = {};
  cluster.per_operation = 0;
  for (const Predict& predict : all_strategies()) {
    const SimulatedStep step = predict(work, cluster);
    EXPECT_NEAR(step.seconds, step.compute, 1e-12);
  }
}

TEST(SimulatedCopies, TakeTheBestScheduleOfTheirBuckets) {
  StepWork work = work_of(6, 2);
  Cluster cluster = cluster_of(2, 4);
  cluster.cpu_per_byte = 1e-10;
  const BucketLimits limits{.first_bytes = 1 << 20, .bytes = 4 << 20};
  const SimulatedBuckets buckets = simulate_buckets(work, cluster, limits);
  // Inputs of dist/ddp/overlap.h, made by hand.
  const double begin = work.forward() + work.backward() + work.forward();
  StepProfile step{.ready = {}, .backward_end = begin + work.backward(), .tail = work.update};
  LinkProfile link;
  const auto add = [&](double ready, int64_t elements) {
    const int64_t aligned = (elements + 15) / 16 * 16;
    const CollectiveCost cost = collective_cost(
        OpKind::kAllReduce, 4.0 * static_cast<double>(aligned), world_of(cluster), cluster);
    step.ready.push_back(begin + ready);
    link.seconds.push_back(cost.link);
    link.stolen_cpu.push_back(cost.cpu);
  };
  ASSERT_GT(buckets.step.ready.size(), 3U);
  // The first parameters: a classifier's matrix comes last here, a layer's first matrix first.
  add(2e-3, 500'000);
  EXPECT_DOUBLE_EQ(buckets.step.ready[0], step.ready[0]);
  EXPECT_DOUBLE_EQ(buckets.link.seconds[0], link.seconds[0]);
  EXPECT_DOUBLE_EQ(buckets.step.backward_end, step.backward_end);
  const double closing =
      collective_cost(OpKind::kAllReduce, 8, world_of(cluster), cluster).seconds();
  EXPECT_DOUBLE_EQ(simulate_copies(work, cluster, limits).seconds,
                   best_schedule(buckets.step, buckets.link) + closing);
}

TEST(SimulatedCopies, ChooseBucketsThatAreNoSlowerThanAnyOther) {
  const StepWork work = work_of(8);
  const Cluster cluster = cluster_of(64, 8);
  const double chosen = simulate_copies(work, cluster).seconds;
  for (int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 2) {
    EXPECT_LE(chosen,
              simulate_copies(work, cluster, {.first_bytes = bytes, .bytes = bytes}).seconds);
  }
}

TEST(SimulatedShards, SendTheBytesThatTheStrategyHas) {
  const StepWork work = work_of(6);
  const Cluster cluster = cluster_of(1, 4);
  const auto bytes = [&](ShardStrategy strategy) {
    return sharded(strategy)(work, cluster).sent_bytes;
  };
  const double unit = 4.0 * 3 / 4 * 4096 * 248;  // 123 + 123 + 1 blocks, padded for four ranks
  const double root = 4.0 * 3 / 4 * 4096 * 492;  // 489 blocks, padded
  // The last unit of forward is kept for backward.
  EXPECT_DOUBLE_EQ(bytes(ShardStrategy::kFullShard), (3 * 6 - 1) * unit + 2 * root);
  EXPECT_DOUBLE_EQ(bytes(ShardStrategy::kShardGradOp), 2 * 6 * unit + 2 * root);
  EXPECT_DOUBLE_EQ(bytes(ShardStrategy::kShardOptimizer), 2 * 6 * unit + 2 * root);
}

TEST(SimulatedShards, HybridKeepsBytesWithinHostsThatFullShardSendsBetweenThem) {
  const StepWork work = work_of(6);
  const Cluster cluster = cluster_of(16, 8);
  EXPECT_LT(sharded(ShardStrategy::kHybridShard, 8)(work, cluster).seconds,
            sharded(ShardStrategy::kFullShard)(work, cluster).seconds);
}

TEST(SimulatedShards, RefuseShardsThatCutThroughHosts) {
  for (const int64_t size : {3, 12, 32}) {
    expect_error<ConfigError>([&] { shard_groups(cluster_of(2, 8), size); }, "shard_size",
                              std::to_string(size));
  }
}

TEST(SimulatedStep, OfAHundredThousandRanksTakesLessThanASecond) {
  const StepWork work = work_of(80, 8);
  const auto start = std::chrono::steady_clock::now();
  for (const Predict& predict : all_strategies()) {
    EXPECT_GT(predict(work, cluster_of(12'500, 8)).seconds, 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(StepLimit, IsWhatShortensTheStepMost) {
  const StepWork work = work_of(6);
  const auto limit = [&](const Cluster& cluster) {
    return limit_of_step(work, cluster, [](const StepWork& of, const Cluster& on) {
      return simulate_copies(of, on).seconds;
    });
  };
  EXPECT_EQ(limit(cluster_of(1, 8)), StepLimit::kComputation);
  Cluster slow = cluster_of(2, 8);
  slow.between.bytes_per_second = 1e7;
  EXPECT_EQ(limit(slow), StepLimit::kLinkBetween);
  slow = cluster_of(1, 8);
  slow.inside.bytes_per_second = 1e7;
  EXPECT_EQ(limit(slow), StepLimit::kLinkInside);
  slow = cluster_of(64, 8);
  slow.between.latency = 10e-3;
  EXPECT_EQ(limit(slow), StepLimit::kLatency);
  slow = cluster_of(2, 1);
  slow.cpu_per_byte = 1e-8;
  EXPECT_EQ(limit(slow), StepLimit::kProcessor);
}

TEST(StepLimit, HasANameForEach) {
  EXPECT_STREQ(name(StepLimit::kComputation), "computation");
  EXPECT_STREQ(name(StepLimit::kStragglers), "stragglers");
  EXPECT_STREQ(name(StepLimit::kLinkInside), "link inside hosts");
  EXPECT_STREQ(name(StepLimit::kLinkBetween), "link between hosts");
  EXPECT_STREQ(name(StepLimit::kLatency), "latency");
  EXPECT_STREQ(name(StepLimit::kProcessor), "CPU");
}

TEST(StepLimit, TakesAwayOneThingAtATime) {
  Cluster cluster = cluster_of(4, 2);
  cluster.cpu_per_byte = 1;
  cluster.stragglers = {.deviation = 1};
  std::vector<std::string> seen;
  const StepLimit limit =
      limit_of_step(work_of(1), cluster, [&](const StepWork& work, const Cluster& left) {
        std::string gone;
        if (work.seconds() == 0) gone += "work ";
        if (left.stragglers.deviation == 0) gone += "stragglers ";
        if (std::isinf(left.inside.bytes_per_second)) gone += "inside ";
        if (std::isinf(left.between.bytes_per_second)) gone += "between ";
        if (left.inside.latency == 0) gone += "latency ";
        EXPECT_EQ(left.inside.latency == 0, left.between.latency == 0);
        EXPECT_EQ(left.inside.latency == 0, left.per_operation == 0);
        if (left.cpu_per_byte == 0) gone += "CPU ";
        seen.push_back(gone);
        return 1.0;
      });
  EXPECT_EQ(seen, (std::vector<std::string>{"work ", "stragglers ", "inside ", "between ",
                                            "latency ", "CPU "}));
  EXPECT_EQ(limit, StepLimit::kComputation) << "the first of equal ones";
}

TEST(SimulatedCopies, AreComputationStragglingAndWhatIsExposed) {
  const StepWork work = work_of(2);
  Cluster cluster = cluster_of(1, 2);
  cluster.stragglers = {.slow_hosts = 1, .slow_factor = 3};
  const SimulatedStep step = simulate_copies(work, cluster);
  EXPECT_DOUBLE_EQ(step.compute, work.seconds());
  EXPECT_DOUBLE_EQ(step.straggling, 2 * (work.forward() + work.backward()));
  EXPECT_DOUBLE_EQ(step.exposed, step.seconds - step.compute - step.straggling);
  // Each of two ranks sends all gradients, the vector of each layer with a gap of 8 elements.
  EXPECT_DOUBLE_EQ(step.sent_bytes, 4.0 * (2 * (2 * 500'000 + 1008) + 2'000'000));
  EXPECT_GT(step.buckets.bytes, 0);
}

}  // namespace
}  // namespace lockstep::dist
