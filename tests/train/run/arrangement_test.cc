#include "train/run/arrangement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Present = std::vector<dist::RollCall::Present>;

std::string no_obstacle(int) { return ""; }

/// Ranks of a run in groups of `shard_size` that have all done `steps`.
Present alike(const std::vector<int>& ranks, int shard_size, int64_t steps = 7) {
  Present present;
  for (const int rank : ranks) {
    present.push_back({rank, StateTold{.steps = steps, .part = rank % shard_size}.text()});
  }
  return present;
}

void add_process(Present& present, int number) { present.push_back({number, StateTold().text()}); }

/// The numbers before, by the new ones.
std::vector<int> order_of(const Arrangement& arranged, const Present& present) {
  std::vector<int> order;
  for (const size_t each : arranged.places) order.push_back(present[each].rank);
  return order;
}

TEST(Arrangement, WhatIsToldOfAStateIsReadAgain) {
  const StateTold told = StateTold::of(StateTold{.steps = 3, .finishes = 4, .part = 1}.text());
  EXPECT_EQ(told.steps, 3);
  EXPECT_EQ(told.finishes, 4);
  EXPECT_EQ(told.part, 1);
  for (const char* text : {"", "3", "3 4", "three 4 1"}) {
    EXPECT_EQ(StateTold::of(text).steps, -1) << text;
    EXPECT_EQ(StateTold::of(text).part, -1) << text;
  }
}

TEST(Arrangement, GroupsThatAreWholeStayAsTheyAre) {
  const Present present = alike({0, 1, 2, 3, 6, 7}, 2);
  const Arrangement arranged = arrange_groups(present, 8, 2, no_obstacle);
  EXPECT_EQ(arranged.why, "");
  EXPECT_EQ(arranged.steps, 7);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 1, 2, 3, 6, 7));
  EXPECT_FALSE(arranged.moves_parts());
}

TEST(Arrangement, ARankOfABrokenGroupWaits) {
  const Present present = alike({0, 1, 2}, 2);
  const Arrangement arranged = arrange_groups(present, 4, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 1));
  EXPECT_FALSE(arranged.moves_parts());
}

TEST(Arrangement, TheGroupThatIsWholeLeadsWhereTheFirstRankIsLost) {
  const Present present = alike({1, 2, 3}, 2);
  const Arrangement arranged = arrange_groups(present, 4, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(2, 3));
}

TEST(Arrangement, TheFirstRankLeadsOnInPlaceOfOneOfAWholeGroup) {
  const Present two = alike({0, 2, 3}, 2);
  EXPECT_THAT(order_of(arrange_groups(two, 4, 2, no_obstacle), two), ElementsAre(0, 3));
  const Present three = alike({0, 2, 3, 4, 5}, 2);
  EXPECT_THAT(order_of(arrange_groups(three, 6, 2, no_obstacle), three), ElementsAre(0, 5, 2, 3));
}

TEST(Arrangement, RanksOfTwoBrokenGroupsMakeOne) {
  const Present present = alike({0, 3, 4, 5}, 2);
  const Arrangement arranged = arrange_groups(present, 6, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 3, 4, 5));
  EXPECT_FALSE(arranged.moves_parts());
  // The one that has part 0 decides.
  const Present without_first = alike({1, 2, 4, 5}, 2);
  EXPECT_THAT(order_of(arrange_groups(without_first, 6, 2, no_obstacle), without_first),
              ElementsAre(2, 1, 4, 5));
}

TEST(Arrangement, RanksWithTheSamePartMakeAGroupOfWhichOneTakesAnother) {
  const Present present = alike({0, 2, 4, 5}, 2);
  const Arrangement arranged = arrange_groups(present, 6, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 5, 2, 4));
  EXPECT_THAT(arranged.sources, ElementsAre(-1, -1, -1, 1));
}

TEST(Arrangement, ProcessesThatJoinTakeThePartsOfTheirPlaces) {
  Present present = alike({0, 1}, 2);
  for (const int number : {2, 3}) add_process(present, number);
  const Arrangement arranged = arrange_groups(present, 2, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(arranged.sources, ElementsAre(-1, -1, 0, 1));
  // A rank is lost as they come: one of them is needed, the other waits.
  Present fewer = alike({0, 2, 3}, 2);
  for (const int number : {4, 5}) add_process(fewer, number);
  const Arrangement with_one = arrange_groups(fewer, 4, 2, no_obstacle);
  EXPECT_THAT(order_of(with_one, fewer), ElementsAre(0, 3, 2, 4));
  EXPECT_THAT(with_one.sources, ElementsAre(-1, -1, -1, 1));
}

TEST(Arrangement, AStepThatOneRankHasDoneIsFinishedByTheOthers) {
  const Present present = {{0, StateTold{.steps = 7, .finishes = 8, .part = 0}.text()},
                           {1, StateTold{.steps = 7, .finishes = 8, .part = 1}.text()},
                           {2, StateTold{.steps = 8, .finishes = -1, .part = 0}.text()}};
  const Arrangement arranged = arrange_groups(present, 4, 2, no_obstacle);
  EXPECT_EQ(arranged.steps, 8);
  EXPECT_FALSE(arranged.moves_parts());
}

TEST(Arrangement, AStepThatNotAllPartsCanFinishIsDoneAgain) {
  const Present present = {{0, StateTold{.steps = 7, .finishes = 8, .part = 0}.text()},
                           {1, StateTold{.steps = 7, .finishes = -1, .part = 1}.text()}};
  EXPECT_EQ(arrange_groups(present, 4, 2, no_obstacle).steps, 7);
}

TEST(Arrangement, ARankWithoutAWholeStateTakesIt) {
  const Present present = {{0, StateTold{.steps = 7, .part = 0}.text()},
                           {1, StateTold{.steps = 7, .part = 1}.text()},
                           {2, StateTold{.steps = 7, .part = 0}.text()},
                           {3, StateTold{.steps = -1, .part = 1}.text()}};
  const Arrangement arranged = arrange_groups(present, 4, 2, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(arranged.sources, ElementsAre(-1, -1, -1, 1));
}

TEST(Arrangement, WithoutEveryPartOfOneStateNobodyGoesOn) {
  for (const Present& present : {alike({0, 2}, 2), alike({1, 3}, 2),
                                 Present{{0, StateTold{.steps = 8, .part = 0}.text()},
                                         {1, StateTold{.steps = 7, .part = 1}.text()}}}) {
    const Arrangement arranged = arrange_groups(present, 4, 2, no_obstacle);
    EXPECT_THAT(arranged.why, HasSubstr("do not have every part of the state of one step"));
    EXPECT_TRUE(arranged.places.empty());
  }
  EXPECT_THAT(arrange_groups(alike({1}, 2), 4, 2, no_obstacle).why,
              HasSubstr("1 of 4 ranks are left, and a model is kept by 2 together"));
}

TEST(Arrangement, AsManyGroupsGoOnAsCanShareAStep) {
  const Present present = alike({0, 1, 2, 3, 4, 5}, 2);
  const auto only = [](int most) {
    return [most](int left) { return left <= most ? "" : fmt::format("{} are too many", left); };
  };
  EXPECT_THAT(order_of(arrange_groups(present, 8, 2, only(4)), present), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(arrange_groups(present, 8, 2, only(0)).why, "6 are too many");
}

TEST(Arrangement, GroupsOfThree) {
  const Present present = alike({0, 2, 3, 4, 5, 7, 8}, 3);
  const Arrangement arranged = arrange_groups(present, 9, 3, no_obstacle);
  EXPECT_THAT(order_of(arranged, present), ElementsAre(0, 7, 2, 3, 4, 5));
  EXPECT_FALSE(arranged.moves_parts());
}

}  // namespace
}  // namespace lockstep::train
