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

}  // namespace
}  // namespace lockstep::dist
