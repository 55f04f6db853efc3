// What sharded steps ask of NCCL and of a device with streams, by count.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/dispatch/op_counter.h"
#include "core/memory/caching_allocator.h"
#include "dist/fsdp/fully_shard.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

constexpr int kRanks = 2;

/// What a step of rank 0 took.
struct StepCounts {
  std::map<std::string, int> collectives;  ///< by function
  int64_t operators = 0;
  int64_t device_allocations = 0;  ///< of all ranks so far
};

/// Counts of steps of a net whose layers are units; its other weights are the root's.
std::vector<StepCounts> count_steps(ShardStrategy strategy, int layers, int steps) {
  const FakeNccl fake;
  std::vector<StepCounts> counts(static_cast<size_t>(steps));
  all_nccl_ranks(fake, {.size = kRanks}, [&](NcclGroup& group) {
    SmallNet net(layers, kHostDevice);
    const auto sharded = fully_shard(net, group, {.strategy = strategy});
    const auto calls = [&] {
      group.barrier().wait();  // all ranks have made theirs
      return fake.calls();
    };
    size_t seen = calls().size();
    for (StepCounts& step : counts) {
      OpCounter counter;
      {
        const ModeGuard on(counter);
        sharded->begin_step();
        sharded->begin_leaf();
        net.loss(1).backward();
        sharded->finish();
      }
      {
        const NoGradGuard no_grad;
        for (size_t i = 0; i < sharded->parameters().size(); ++i) {
          sub_(sharded->parameters()[i].tensor, sharded->gradients()[i], 0.1);
        }
      }
      sharded->mark_changed();
      const std::vector<FakeNccl::Call> made = calls();
      if (group.rank() == 0) {
        for (; seen < made.size(); ++seen) {
          // Barriers are the test's.
          if (made[seen].rank == 0 && made[seen].name != "ncclAllReduce") {
            ++step.collectives[made[seen].name];
          }
        }
        step.operators = counter.total().calls;
        step.device_allocations = caching_allocator(kHostDevice).memory_stats().num_device_alloc;
      }
      group.barrier().wait();
    }
  });
  return counts;
}

TEST(ShardedStepOverNccl, GathersAndSumsEachUnitAsOftenAsItsStrategyNeeds) {
  // Three layers and the root. With kFullShard the last unit and the root stay for backward; before
  // the order of units is known, in the first step, one of them is gathered again.
  const auto second_step = [](ShardStrategy strategy) {
    return count_steps(strategy, 3, 2)[1].collectives;
  };
  EXPECT_THAT(second_step(ShardStrategy::kFullShard),
              UnorderedElementsAre(Pair("ncclAllGather", 6), Pair("ncclReduceScatter", 4)));
  EXPECT_THAT(second_step(ShardStrategy::kShardGradOp),
              UnorderedElementsAre(Pair("ncclAllGather", 4), Pair("ncclReduceScatter", 4)));
  EXPECT_THAT(second_step(ShardStrategy::kShardOptimizer),
              UnorderedElementsAre(Pair("ncclAllGather", 4), Pair("ncclReduceScatter", 4)));
}

TEST(ShardedStepOverNccl, ALayerAddsAUnitsCollectivesAndItsOwnOperators) {
  const StepCounts three = count_steps(ShardStrategy::kFullShard, 3, 3)[2];
  const StepCounts five = count_steps(ShardStrategy::kFullShard, 5, 3)[2];
  EXPECT_EQ(five.collectives.at("ncclAllGather") - three.collectives.at("ncclAllGather"), 2 * 2);
  EXPECT_EQ(five.collectives.at("ncclReduceScatter") - three.collectives.at("ncclReduceScatter"),
            2);
  // Of forward: backward runs on the device's own thread.
  EXPECT_EQ(five.operators - three.operators, 2 * 4);
}

TEST(ShardedStepOverNccl, NoStepBehindTheSecondNeedsMoreMemory) {
  // A unit that each step left allocated would be more than the device's granule of 2 MiB in all.
  const std::vector<StepCounts> counts = count_steps(ShardStrategy::kFullShard, 3, 150);
  for (size_t i = 2; i < counts.size(); ++i) {
    ASSERT_EQ(counts[i].device_allocations, counts[1].device_allocations) << "step " << i;
    ASSERT_EQ(counts[i].collectives, counts[1].collectives) << "step " << i;
  }
}

}  // namespace
}  // namespace lockstep::dist
