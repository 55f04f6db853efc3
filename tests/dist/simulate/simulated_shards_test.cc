// The times and bytes of small sharded steps, worked out by hand.

#include <gtest/gtest.h>

#include <string>

#include "dist/simulate/collective_cost.h"
#include "dist/simulate/simulated_step.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 40;

/// Three units with 1 s of forward and 2 s of backward each; 0.5 s and 1 s outside of them.
StepWork three_units(int64_t micro_batches = 1) {
  StepWork work;
  const std::vector<ParameterWork> parameters{{.elements = 8192, .is_matrix = true}};
  for (int i = 0; i < 3; ++i) {
    work.units.push_back({.name = "", .forward = 1, .backward = 2, .parameters = parameters});
  }
  work.root = {.name = "", .forward = 0.5, .backward = 1, .parameters = parameters};
  work.micro_batches = micro_batches;
  work.update = 2;
  return work;
}

/// Every operation takes `seconds` of its link, whatever its bytes.
Cluster even(int64_t hosts, int64_t local, double seconds) {
  return {.hosts = hosts,
          .ranks_per_host = local,
          .collectives = Collectives::kDirect,
          .per_operation = seconds};
}

double seconds_of(ShardStrategy strategy, int64_t prefetch, int64_t micro_batches = 1) {
  return simulate_sharded(three_units(micro_batches), even(2, 1, 1.5),
                          {.strategy = strategy, .prefetch_bytes = prefetch})
      .seconds;
}

// The update of a half takes 1 s, and the sum of the losses at the end 1.5 s.
constexpr double kEnd = 2.5;

TEST(SimulatedShards, AUnitWaitsForItsGatherAndTheNextIsGatheredMeanwhile) {
  // Forward: gathers end at 1.5, 3, 4.5 and 6, so the units at 4, 5.5 and 7; the rest at 8.5.
  // Backward: unit 2 until 10.5, reduced until 12; unit 1, gathered from 8.5 to 10, until 12.5,
  // reduced until 15; unit 0, gathered from 12 to 13.5, until 15.5, reduced until 17; the root's
  // reduction follows.
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kFullShard, 0), 18.5 + kEnd);
  // One unit more ahead: unit 0 is gathered before unit 2 is reduced.
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kFullShard, kUnlimited), 17.5 + kEnd);
  // 64 KiB, two units of 32 KiB, are one more than the next.
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kFullShard, 65'536), 17.5 + kEnd);
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kFullShard, 65'535), 18.5 + kEnd);
  // Backward gathers nothing again.
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kShardGradOp, 0), 17.5 + kEnd);
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kShardOptimizer, 0), 17.5 + kEnd);
}

TEST(SimulatedShards, WholeModelsAreGatheredAndReducedOnceAStep) {
  // 10.5 s of computation after 4 s of waiting, then 3.5 s and 1 s; reductions begin at 21.
  EXPECT_DOUBLE_EQ(seconds_of(ShardStrategy::kShardOptimizer, 0, 2), 28 + kEnd);
}

TEST(SimulatedShards, SumsOfReplicasUseTheLinkBetweenHosts) {
  const ShardingWork hybrid{.strategy = ShardStrategy::kHybridShard, .shard_size = 2};
  // Within hosts as above; between them sums from 15.5 on, when the first reduction is waited for.
  EXPECT_DOUBLE_EQ(simulate_sharded(three_units(), even(2, 2, 1.5), hybrid).seconds, 21.5 + kEnd);
  // Over one link they delay the reductions.
  EXPECT_DOUBLE_EQ(simulate_sharded(three_units(), even(4, 1, 1.5), hybrid).seconds, 24.5 + kEnd);
}

TEST(SimulatedShards, AStepIsComputationStragglingAndWhatIsExposed) {
  const SimulatedStep step = simulate_sharded(three_units(), even(2, 1, 1.5), {});
  EXPECT_DOUBLE_EQ(step.compute, 10.5 + 1);
  EXPECT_DOUBLE_EQ(step.straggling, 0);
  EXPECT_DOUBLE_EQ(step.exposed, 21 - 11.5);
  Cluster slow = even(2, 1, 0);
  slow.stragglers = {.slow_hosts = 1, .slow_factor = 2};
  const SimulatedStep delayed = simulate_sharded(three_units(2), slow, {});
  EXPECT_DOUBLE_EQ(delayed.seconds, 2 * 21 + 1);
  EXPECT_DOUBLE_EQ(delayed.straggling, 21);
  EXPECT_DOUBLE_EQ(delayed.exposed, 0);
}

TEST(SimulatedShards, TheProcessorSpendsItsTimeForEveryByteThatIsSent) {
  Cluster cluster = even(2, 2, 0);
  cluster.cpu_per_byte = 1e-6;
  const SimulatedStep step = simulate_sharded(
      three_units(), cluster, {.strategy = ShardStrategy::kHybridShard, .shard_size = 2});
  // Halves of 32 KiB: five gathers and four reductions of units, a gather and a reduction of the
  // root, and the sums of eight halves' quarter each way.
  EXPECT_DOUBLE_EQ(step.sent_bytes, (5 + 3 + 2) * 16'384.0 + 4 * 16'384.0);
  EXPECT_DOUBLE_EQ(step.seconds, 10.5 + step.sent_bytes * 1e-6 + 1);
}

TEST(SimulatedShards, GradientsThatAccumulateAreReducedInTheLastPassAlone) {
  const Cluster cluster = even(2, 1, 0);
  const auto sent = [&](ShardingWork how) {
    return simulate_sharded(three_units(3), cluster, how).sent_bytes / 16'384;
  };
  // Of three passes: five gathers of units and one of the root each; four reductions.
  EXPECT_DOUBLE_EQ(sent({}), 3 * (6 + 4));
  EXPECT_DOUBLE_EQ(sent({.accumulates = true}), 3 * 6 + 4);
  EXPECT_DOUBLE_EQ(sent({.strategy = ShardStrategy::kShardGradOp}), 3 * (4 + 4));
  EXPECT_DOUBLE_EQ(sent({.strategy = ShardStrategy::kShardOptimizer}), 4 + 4);
}

TEST(SimulatedShards, SumsGoToTheReplicasOnceAStepHoweverManyPassesSumInTheirGroup) {
  const ShardingWork hybrid{.strategy = ShardStrategy::kHybridShard, .shard_size = 2};
  const auto sent = [&](int64_t passes) {
    return simulate_sharded(three_units(passes), even(2, 2, 0), hybrid).sent_bytes / 16'384;
  };
  EXPECT_DOUBLE_EQ(sent(1), 10 + 4);
  EXPECT_DOUBLE_EQ(sent(3), 3 * 10 + 4);
}

/// Bytes that one of two ranks sends in a step of one unit; the root has a block.
double sent_with(const std::vector<ParameterWork>& parameters, ShardingWork how) {
  StepWork work;
  work.units.push_back({.name = "", .forward = 1, .backward = 1, .parameters = parameters});
  work.root.parameters = {{.elements = 4096, .is_matrix = true}};
  return simulate_sharded(work, even(2, 1, 0), how).sent_bytes;
}

TEST(SimulatedShards, MatricesThatAreCastTakeTwoBytesUnlessVectorsDoNotFitBefore) {
  const auto block = [](bool is_matrix) {
    return ParameterWork{.elements = 10, .is_matrix = is_matrix};
  };
  const ShardingWork casts{.gathers_casts = true};
  // Three blocks, padded to four; the root's is padded to two. Each is gathered and reduced once,
  // in 4 bytes an element, and half of it is sent.
  const std::vector<ParameterWork> mixed{{.elements = 8192, .is_matrix = true}, block(false)};
  constexpr double kBlock = 4 * 4096;
  EXPECT_DOUBLE_EQ(sent_with(mixed, {}), (4 + 2) * kBlock);
  EXPECT_DOUBLE_EQ(sent_with(mixed, casts), (3 + 2) * kBlock);
  EXPECT_DOUBLE_EQ(sent_with(mixed, {.reduces_halves = true}), (2 + 1 + 1.5) * kBlock);
  EXPECT_DOUBLE_EQ(
      sent_with(mixed, {.strategy = ShardStrategy::kShardOptimizer, .gathers_casts = true}),
      (4 + 2) * kBlock);
  // The vectors must lie in the first rank's part.
  EXPECT_DOUBLE_EQ(sent_with({block(true), block(false)}, casts), (1.5 + 2) * kBlock);
  EXPECT_DOUBLE_EQ(sent_with({block(true), block(false), block(false), block(false)}, casts),
                   (4 + 2) * kBlock);
  EXPECT_DOUBLE_EQ(sent_with({block(false), block(false)}, casts), (2 + 2) * kBlock);
}

TEST(SimulatedShards, VectorsBesideCastsAreAnOperationOfTheirOwn) {
  const auto step_with = [](bool has_vector, bool casts, const Cluster& cluster) {
    StepWork work;
    work.units.push_back({.name = "", .forward = 1, .backward = 1, .parameters = {}});
    work.units[0].parameters = {{.elements = 8192, .is_matrix = true},
                                {.elements = 4096, .is_matrix = !has_vector}};
    work.root.parameters = {{.elements = 4096, .is_matrix = true}};
    return simulate_sharded(work, cluster, {.gathers_casts = casts}).seconds;
  };
  // The unit stays gathered from forward to backward.
  const Cluster slow = even(2, 1, 1.5);
  EXPECT_DOUBLE_EQ(step_with(true, true, slow), step_with(false, true, slow) + 1.5);
  EXPECT_DOUBLE_EQ(step_with(true, false, slow), step_with(false, false, slow));
  // A block of them in 4 bytes an element, of which each rank sends a half.
  Cluster narrow = even(2, 1, 0);
  narrow.between.bytes_per_second = 4 * 4096 / 2;
  EXPECT_DOUBLE_EQ(step_with(true, true, narrow), step_with(false, true, narrow) + 1);
}

TEST(SimulatedShards, GroupsAreWithinHostsOrOfWholeOnes) {
  const auto expect = [](int64_t size, const GroupShape& shards, const GroupShape& replicas) {
    const ShardGroups groups = shard_groups(even(8, 4, 0), size);
    EXPECT_EQ(groups.shards.hosts, shards.hosts) << size;
    EXPECT_EQ(groups.shards.ranks_per_host, shards.ranks_per_host) << size;
    EXPECT_EQ(groups.replicas.hosts, replicas.hosts) << size;
    EXPECT_EQ(groups.replicas.ranks_per_host, replicas.ranks_per_host) << size;
    EXPECT_EQ(groups.replicas.sharing, replicas.sharing) << size;
    EXPECT_EQ(groups.replicas.stride, replicas.stride) << size;
    EXPECT_EQ(groups.shards.sharing, 1) << size;
  };
  expect(2, {.hosts = 1, .ranks_per_host = 2}, {.hosts = 8, .ranks_per_host = 2, .sharing = 2});
  expect(4, {.hosts = 1, .ranks_per_host = 4}, {.hosts = 8, .ranks_per_host = 1, .sharing = 4});
  expect(8, {.hosts = 2, .ranks_per_host = 4},
         {.hosts = 4, .ranks_per_host = 1, .sharing = 4, .stride = 2});
  expect(0, {.hosts = 8, .ranks_per_host = 4},
         {.hosts = 1, .ranks_per_host = 1, .sharing = 4, .stride = 8});
  expect_error<ConfigError>([] { shard_groups(even(8, 4, 0), 12); },
                            "[plan] parallel.shard_size: expected a divisor of the 4 ranks of a "
                            "host, or whole hosts that divide all 8, got 12 ranks. Set another.");
}

}  // namespace
}  // namespace lockstep::dist
