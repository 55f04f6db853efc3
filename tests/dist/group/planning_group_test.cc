#include "dist/group/planning_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/collectives/schedule.h"
#include "tests/core/device/watched_memory.h"

namespace lockstep::dist {
namespace {

Tensor on_meta(int64_t count) { return empty({count}, {DType::kF32, kMeta}); }

uint64_t planned_bytes(OpKind kind, int rank, int size, int64_t count, int root = 0) {
  const Operation operation{.kind = kind, .dtype = DType::kF32, .root = root, .count = count};
  return bytes_sent(plan(operation, rank, size, Cut()));
}

TEST(PlanningGroup, CountsTheBytesOfEachOperationsPlan) {
  PlanningGroup group(1, 8);
  EXPECT_EQ(group.bytes_sent(), 0u);
  EXPECT_TRUE(group.plans());
  EXPECT_STREQ(group.backend(), "plan");
  const std::vector<Tensor> tensors{on_meta(10'000), on_meta(20'000), on_meta(10'000)};
  EXPECT_TRUE(group.all_reduce(tensors).is_completed());
  EXPECT_EQ(group.bytes_sent(OpKind::kAllReduce),
            2 * planned_bytes(OpKind::kAllReduce, 1, 8, 10'000) +
                planned_bytes(OpKind::kAllReduce, 1, 8, 20'000));
  // Each root's broadcast is a plan of its own.
  group.broadcast(tensors[0], 1);
  group.broadcast(tensors[0], 2);
  EXPECT_EQ(group.bytes_sent(OpKind::kBroadcast),
            planned_bytes(OpKind::kBroadcast, 1, 8, 10'000, 1) +
                planned_bytes(OpKind::kBroadcast, 1, 8, 10'000, 2));
  const std::vector<int64_t> splits{0, 5, 0, 0, 3, 0, 0, 0};
  group.all_to_all(on_meta(8), on_meta(8), splits, splits);
  EXPECT_EQ(group.bytes_sent(OpKind::kAllToAll), 3u * 4) << "all but its own part";
  EXPECT_EQ(group.bytes_sent(), group.bytes_sent(OpKind::kAllReduce) +
                                    group.bytes_sent(OpKind::kBroadcast) +
                                    group.bytes_sent(OpKind::kAllToAll));
}

TEST(PlanningGroup, ASumOverLeavesIsAPlanOfItsOwn) {
  PlanningGroup group(0, 2);
  const auto sent = [&](const std::function<void()>& call) {
    const uint64_t before = group.bytes_sent(OpKind::kAllReduce);
    call();
    return group.bytes_sent(OpKind::kAllReduce) - before;
  };
  const Tensor output = on_meta(8'192);
  // Rank 0 sends its half of every row and the half that it has summed up.
  EXPECT_EQ(sent([&] { group.all_reduce(output); }), 2u * 16'384);
  EXPECT_EQ(sent([&] {
              group.tree_all_reduce(output, on_meta(16'384).view({2, 8'192}), 6);
            }),
            3u * 16'384);
  EXPECT_EQ(sent([&] {
              group.tree_all_reduce(output, on_meta(8'192).view({1, 8'192}), 8);
            }),
            2u * 16'384);
}

TEST(PlanningGroup, ItsSubgroupsHaveTheirOwnRanksAndCountWithIt) {
  PlanningGroup group(1, 4);
  EXPECT_EQ(group.subgroup({0, 2}, "others"), nullptr);
  const auto pair = group.subgroup({3, 1}, "pair");
  EXPECT_EQ(pair->rank(), 1);
  EXPECT_EQ(pair->size(), 2);
  EXPECT_EQ(pair->name(), "pair");
  pair->all_reduce(on_meta(10'000));
  EXPECT_EQ(group.bytes_sent(), planned_bytes(OpKind::kAllReduce, 1, 2, 10'000));
}

TEST(PlanningGroup, GathersOnTheCpuAsIfAllRanksGaveTheSame) {
  PlanningGroup group(2, 3);
  const Tensor input = empty({2}, DType::kF32).fill_(7);
  const Tensor output = empty({6}, DType::kF32).fill_(0);
  group.all_gather(output, input).wait();
  EXPECT_EQ(std::vector<float>(output.data<float>(), output.data<float>() + 6),
            std::vector<float>(6, 7));
  group.all_gather(on_meta(6), on_meta(2)).wait();
  group.all_gather(empty({0}, DType::kF32), empty({0}, DType::kF32)).wait();
  // Other results are left as they are.
  group.all_reduce(output).wait();
  EXPECT_EQ(output.data<float>()[5], 7);
}

TEST(PlanningGroup, KeepsTheTensorsOfTheReduceScattersUnderWay) {
  WatchedMemory memory(kCPU);
  PlanningGroup group(0, 2, 2);
  const auto scatter = [&] { group.reduce_scatter(memory.vector(1), memory.vector(2)); };
  scatter();
  scatter();
  EXPECT_EQ(memory.freed(), 0);
  scatter();
  EXPECT_EQ(memory.freed(), 2) << "the oldest is complete";
  group.all_reduce(memory.vector(1));
  EXPECT_EQ(memory.freed(), 3) << "others are complete at once";
  group.complete();
  EXPECT_EQ(memory.freed(), 7);
  PlanningGroup none(0, 2);
  none.reduce_scatter(memory.vector(1), memory.vector(2));
  EXPECT_EQ(memory.freed(), 9);
}

}  // namespace
}  // namespace lockstep::dist
