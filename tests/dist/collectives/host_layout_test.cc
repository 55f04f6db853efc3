#include "dist/collectives/host_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "dist/collectives/host_choice.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

HostLayout layout_of(const std::vector<int>& names) { return HostLayout(names); }

TEST(HostLayout, NumbersHostsInTheOrderOfTheirFirstRanks) {
  const HostLayout layout = layout_of({9, 4, 9, 4, 4});
  EXPECT_EQ(layout.ranks(), 5);
  EXPECT_EQ(layout.hosts(), 2);
  EXPECT_THAT(layout.ranks_of(0), ElementsAre(0, 2));
  EXPECT_THAT(layout.ranks_of(1), ElementsAre(1, 3, 4));
  EXPECT_EQ(layout.host_of(3), 1);
  EXPECT_EQ(layout.local(3), 1);
  EXPECT_EQ(layout.leader(1), 1);
}

TEST(HostLayout, HasLevelsWithSeveralHostsAndSeveralRanksOnOne) {
  EXPECT_FALSE(HostLayout::one_host(4).has_levels());
  EXPECT_FALSE(layout_of({0, 1, 2}).has_levels());
  EXPECT_TRUE(layout_of({0, 1, 1}).has_levels());
}

TEST(HostLayout, WorkForAnotherHostIsSharedOut) {
  const HostLayout layout = layout_of({0, 0, 0, 0, 1, 1, 2});
  for (const int rank : {0, 1, 2, 3}) EXPECT_EQ(layout.agent(0, rank), rank);
  EXPECT_EQ(layout.agent(1, 0), 4);
  EXPECT_EQ(layout.agent(1, 1), 4);
  EXPECT_EQ(layout.agent(1, 2), 5);
  EXPECT_EQ(layout.agent(1, 3), 5);
  EXPECT_EQ(layout.agent(2, 3), 6);
  EXPECT_EQ(layout.agent(0, 4), 0);
  EXPECT_EQ(layout.agent(0, 5), 2);
}

Operation operation_of(OpKind kind, DType dtype) { return {.kind = kind, .dtype = dtype}; }

TEST(HostChoice, GoesByHostsWhereItSendsFewerBytes) {
  const Operation sum = operation_of(OpKind::kAllReduce, DType::kF32);
  EXPECT_TRUE(saves_between_hosts(sum, layout_of({0, 0, 1, 1})));
  EXPECT_TRUE(saves_between_hosts(sum, layout_of({0, 1, 1})));
  EXPECT_FALSE(saves_between_hosts(sum, HostLayout::one_host(4)));
  EXPECT_FALSE(saves_between_hosts(sum, layout_of({0, 1, 2})));
}

TEST(HostChoice, CountsThatPartialSumsOf16BitsTakeTwice) {
  const Operation sum = operation_of(OpKind::kAllReduce, DType::kBF16);
  // 1.5 of the bytes instead of 4/3 for the host with two ranks; of 2 with two hosts of two.
  EXPECT_FALSE(saves_between_hosts(sum, layout_of({0, 1, 1})));
  EXPECT_TRUE(saves_between_hosts(sum, layout_of({0, 0, 1, 1})));
  const Operation part = operation_of(OpKind::kReduceScatter, DType::kBF16);
  EXPECT_FALSE(saves_between_hosts(part, layout_of({0, 0, 1, 1})));
  EXPECT_TRUE(saves_between_hosts(part, layout_of({0, 0, 0, 1, 1, 1})));
}

TEST(HostChoice, PartsOfManyRanksAreNotCollectedByOne) {
  // The host with one rank would send as much: a partial sum, which is its value, for each part.
  const Operation part = operation_of(OpKind::kReduceScatter, DType::kF32);
  EXPECT_FALSE(saves_between_hosts(part, layout_of({0, 1, 1, 1})));
}

std::vector<int> even_hosts_of(int hosts, int local) {
  std::vector<int> names;
  for (int rank = 0; rank < hosts * local; ++rank) names.push_back(rank / local);
  return names;
}

HostWay way_of(int hosts, int local, int64_t bytes) {
  const Operation operation{.kind = OpKind::kAllReduce, .dtype = DType::kU8, .count = bytes};
  return fastest_way(operation, layout_of(even_hosts_of(hosts, local)), 128 * 1024);
}

TEST(HostChoice, SmallTensorsTakeFewMessagesAndThoseOfManyHostsATree) {
  EXPECT_EQ(way_of(2, 2, 64), HostWay::kExchange);
  EXPECT_EQ(way_of(2, 2, 1 << 20), HostWay::kParts) << "more than a message";
  EXPECT_EQ(way_of(8, 4, 512), HostWay::kExchange);
  // Every host would receive seven times the tensor.
  EXPECT_EQ(way_of(8, 4, 8192), HostWay::kParts);
  EXPECT_EQ(way_of(512, 8, 64), HostWay::kTree);
  EXPECT_EQ(way_of(512, 8, 16 * 1024), HostWay::kTree);
  EXPECT_EQ(way_of(512, 8, 100 * 1024), HostWay::kParts);
  EXPECT_EQ(way_of(64, 1, 1024), HostWay::kTree);
}

TEST(HostChoice, PartialSumsOf16BitsMustFitInAMessageAsWell) {
  const HostLayout layout = layout_of(even_hosts_of(512, 8));
  const auto way = [&](DType dtype, int64_t count, ReduceOp op = ReduceOp::kSum) {
    const Operation operation{
        .kind = OpKind::kAllReduce, .dtype = dtype, .reduction = {op}, .count = count};
    return fastest_way(operation, layout, 16 * 1024);
  };
  EXPECT_EQ(way(DType::kF32, 4096), HostWay::kTree);
  EXPECT_EQ(way(DType::kBF16, 4096), HostWay::kTree);
  EXPECT_EQ(way(DType::kBF16, 4097), HostWay::kParts) << "they travel in 32 bits";
  EXPECT_EQ(way(DType::kBF16, 8192, ReduceOp::kMax), HostWay::kTree) << "these do not";
}

TEST(HostChoice, SumsOverLeavesTakeNoTreeOfHosts) {
  Operation operation{.kind = OpKind::kAllReduce, .dtype = DType::kF32, .count = 10};
  const HostLayout layout = layout_of(even_hosts_of(256, 2));
  EXPECT_EQ(fastest_way(operation, layout, 128 * 1024), HostWay::kTree);
  operation.deal = LeafDeal::even(512, 512);
  operation.reduction.leaves = 512;
  EXPECT_EQ(fastest_way(operation, layout, 128 * 1024), HostWay::kExchange);
}

}  // namespace
}  // namespace lockstep::dist
