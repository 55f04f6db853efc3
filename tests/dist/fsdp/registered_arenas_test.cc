// Arenas of sharded models in memory that is registered with NCCL.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "dist/fsdp/arena_slots.h"
#include "dist/fsdp/fully_shard.h"
#include "tests/dist/fsdp/small_net.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::Field;

constexpr int kMembers = 2;
constexpr int kStepsOfEach = 4;

FakeNcclJob job_with(bool user_buffers) {
  FakeNcclJob result{.size = kMembers};
  result.options.user_buffers = user_buffers;
  return result;
}

/// What steps of a sharded net leave, and ask of NCCL.
struct TrainedNet {
  std::vector<std::vector<float>> parameters;
  std::vector<FakeNccl::Call> calls;  ///< gathers and sums of both ranks
  std::vector<int> windows;           ///< of both ranks, after each step
};

TrainedNet steps_with(const ShardOptions& options, bool user_buffers, int passes = 1) {
  const FakeNccl fake;
  TrainedNet result;
  all_nccl_ranks(fake, job_with(user_buffers), [&](NcclGroup& group) {
    SmallNet net(3, kHostDevice);
    const auto sharded = fully_shard(net, group, options);
    for (int step = 0; step < kStepsOfEach; ++step) {
      sharded->begin_step();
      for (int pass = 0; pass < passes; ++pass) {
        sharded->begin_leaf();
        if (pass + 1 == passes) sharded->expect_last_backward();
        net.loss(kMembers * (passes * step + pass) + group.rank()).backward();
      }
      sharded->finish();
      {
        const NoGradGuard no_grad;
        for (size_t i = 0; i < sharded->parameters().size(); ++i) {
          sub_(sharded->parameters()[i].tensor, sharded->gradients()[i], 0.1);
        }
      }
      sharded->mark_changed();
      group.barrier().synchronize();
      if (group.rank() == 0) result.windows.push_back(fake.windows());
      group.barrier().synchronize();
    }
    if (group.rank() == 0) {
      for (const FakeNccl::Call& call : fake.calls()) {
        const bool is_of_a_unit = call.name == "ncclAllGather" || call.name == "ncclReduceScatter";
        if (is_of_a_unit) result.calls.push_back(call);
      }
    }
    group.barrier().synchronize();
    sharded->summon_full_parameters();
    group.barrier().synchronize();
    if (group.rank() == 0) {
      EXPECT_EQ(fake.windows(), result.windows.back()) << "the whole model takes none";
      for (const Tensor& each : net.parameters()) result.parameters.push_back(values_of(each));
    }
    group.barrier().synchronize();
  });
  EXPECT_EQ(fake.count("ncclMemFree"), fake.count("ncclMemAlloc"));
  return result;
}

TEST(RegisteredArenas, AreWhereUnitsAreGatheredAndSummedWithTheSameBits) {
  for (const ShardStrategy strategy :
       {ShardStrategy::kFullShard, ShardStrategy::kShardGradOp, ShardStrategy::kShardOptimizer}) {
    const ShardOptions options{.strategy = strategy};
    const TrainedNet there = steps_with(options, true), elsewhere = steps_with(options, false);
    EXPECT_EQ(there.parameters, elsewhere.parameters);
    EXPECT_THAT(there.calls, Each(Field(&FakeNccl::Call::in_windows, true)));
    EXPECT_THAT(elsewhere.calls, Each(Field(&FakeNccl::Call::in_windows, false)));
    EXPECT_EQ(there.windows.back(), there.windows.front()) << "none is added by a step";
  }
}

TEST(RegisteredArenas, OfUnitsThatAreNotThereAtTheSameTimeShareMemory) {
  const auto windows = [](ShardStrategy strategy) {
    return steps_with({.strategy = strategy}, true).windows.back();
  };
  EXPECT_LT(windows(ShardStrategy::kFullShard), windows(ShardStrategy::kShardGradOp));
}

TEST(RegisteredArenas, HoldWhatIsSentInANarrowerDtype) {
  const ShardOptions options{.reduce_dtype = DType::kBF16};
  const TrainedNet there = steps_with(options, true), elsewhere = steps_with(options, false);
  EXPECT_EQ(there.parameters, elsewhere.parameters);
  EXPECT_THAT(there.calls, Each(Field(&FakeNccl::Call::in_windows, true)));
}

TEST(RegisteredArenas, OfSeveralBackwardsAreThoseOfOne) {
  for (const bool accumulates : {false, true}) {
    const ShardOptions options{.accumulates = accumulates};
    const TrainedNet there = steps_with(options, true, 3),
                     elsewhere = steps_with(options, false, 3);
    EXPECT_EQ(there.parameters, elsewhere.parameters);
    EXPECT_EQ(there.windows.back(), there.windows.front());
  }
}

TEST(RegisteredArenas, AreNotWhereRanksMayTakeThemInAnotherOrder) {
  const TrainedNet trained = steps_with({.accumulates = true, .uneven_passes = true}, true);
  EXPECT_EQ(trained.windows.back(), 0);
}

TEST(RegisteredArenas, AnArenaGetsTheSmallestFreeSlotThatIsLargeEnough) {
  const FakeNccl fake;
  all_nccl_ranks(fake, job_with(true), [](NcclGroup& group) {
    RegisteredArenas arenas(group, kHostDevice, {4000, 2000, 4000});
    const Tensor first = arenas.take(1000, DType::kF32);
    EXPECT_TRUE(arenas.has(first));
    EXPECT_FALSE(arenas.has(host_ones(1000)));
    const Tensor half = arenas.take(1000, DType::kBF16);
    const Tensor second = arenas.take(1, DType::kF32);
    EXPECT_NE(second.data(), first.data());
    EXPECT_FALSE(arenas.take(1, DType::kF32).defined()) << "all are taken";
    arenas.give_back(host_ones(1000));
    arenas.give_back(half);
    EXPECT_FALSE(arenas.take(1001, DType::kBF16).defined()) << "what is free is too small";
    EXPECT_EQ(arenas.take(1000, DType::kBF16).data(), half.data());
    EXPECT_FALSE(arenas.take(0, DType::kF32).defined());
  });
}

TEST(RegisteredArenas, AreRegisteredBeforeTheFirstStep) {
  const FakeNccl fake;
  all_nccl_ranks(fake, job_with(true), [&](NcclGroup& group) {
    SmallNet net(3, kHostDevice);
    const auto sharded = fully_shard(net, group, {});
    group.barrier().synchronize();
    EXPECT_GT(fake.windows(), 0);
    group.barrier().synchronize();
  });
}

TEST(ArenaSlots, OfAFullyShardedModelAreThoseOfTheRootAndOfFewUnits) {
  const std::vector<UnitSize> units = {
      {1000, 500, true}, {100, 50, true}, {100, 50, true}, {300, 150, true}, {100, 50, true}};
  const ShardOptions options{.prefetch_bytes = 1200, .gather_dtype = DType::kBF16};
  const ArenaSlots slots = arena_slots(options, units, DType::kF32);
  EXPECT_THAT(slots.gathers, testing::UnorderedElementsAre(4000, 600, 600, 600));
  EXPECT_THAT(slots.sums,
              testing::UnorderedElementsAre(4000, 1200, 1200, 1200, 1200, 2000, 600, 600, 600));
}

TEST(ArenaSlots, AreThoseOfAllUnitsWhereAllAreThereAtOnce) {
  const std::vector<UnitSize> units = {{1000, 500, true}, {100, 50, false}, {200, 100, true}};
  const ArenaSlots slots = arena_slots(
      {.strategy = ShardStrategy::kShardOptimizer, .accumulates = true}, units, DType::kF32);
  EXPECT_THAT(slots.gathers, testing::UnorderedElementsAre(4000, 400, 800));
  EXPECT_THAT(slots.sums, testing::UnorderedElementsAre(4000, 0, 800, 2000, 400, 400));
}

}  // namespace
}  // namespace lockstep::dist
