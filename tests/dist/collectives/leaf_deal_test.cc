#include "dist/collectives/leaf_deal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

/// A stack of sums, written as text: "(0+1)".
class Texts {
 public:
  void push(std::string text, int joins) {
    texts_.push_back(std::move(text));
    for (; joins > 0; --joins) {
      const std::string right = texts_.back();
      texts_.pop_back();
      texts_.back() = "(" + texts_.back() + "+" + right + ")";
    }
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

/// The sums on the stack of a rank after all its leaves.
std::vector<std::string> sums_of_leaves(LeafRange own) {
  LeafStack stack;
  Texts texts;
  for (int64_t leaf = own.first; leaf < own.end; ++leaf) {
    texts.push(std::to_string(leaf), stack.push({leaf, leaf + 1}));
  }
  return texts.texts();
}

std::string whole_sum(const LeafDeal& deal) {
  const std::vector<uint8_t> joins = joins_over_ranks(deal);
  Texts texts;
  size_t at = 0;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    for (const std::string& sum : sums_of_leaves(deal.of(rank))) texts.push(sum, joins[at++]);
  }
  EXPECT_EQ(at, joins.size());
  EXPECT_EQ(texts.texts().size(), 1u);
  return texts.texts().front();
}

std::string sum_of_one_rank(int64_t leaves) { return whole_sum(LeafDeal::even(leaves, 1)); }

TEST(LeafDeal, EvenlyRanksHaveWholeLeavesAsEvenAsTheyGo) {
  const LeafDeal deal = LeafDeal::even(8, 3);
  EXPECT_EQ(deal.of(0), (LeafRange{0, 2}));
  EXPECT_EQ(deal.of(1), (LeafRange{2, 5}));
  EXPECT_EQ(deal.of(2), (LeafRange{5, 8}));
  EXPECT_EQ(deal.leaves(), 8);
  EXPECT_EQ(deal.ranks(), 3);
}

TEST(LeafDeal, ByCountsRanksHaveRunsOneAfterTheOther) {
  const LeafDeal deal = LeafDeal::of_counts(std::vector<int64_t>{5, 1, 2});
  EXPECT_EQ(deal.of(0), (LeafRange{0, 5}));
  EXPECT_EQ(deal.of(1), (LeafRange{5, 6}));
  EXPECT_EQ(deal.of(2), (LeafRange{6, 8}));
  EXPECT_THAT(deal.counts(), ElementsAre(5, 1, 2));
  EXPECT_EQ(to_string(deal), "5 + 1 + 2");
}

TEST(LeafDeal, GroupsOfRanksHaveTheLeavesOfTheirRanks) {
  const LeafDeal deal = LeafDeal::of_counts(std::vector<int64_t>{5, 1, 2, 4});
  EXPECT_THAT(deal.of_groups(2).counts(), ElementsAre(6, 6));
  EXPECT_THAT(deal.of_groups(4).counts(), ElementsAre(12));
  EXPECT_TRUE(deal.of_groups(1) == deal);
}

TEST(LeafDeal, IsTheSameWhereEveryRankHasTheSameLeaves) {
  const auto deal = [](std::vector<int64_t> counts) { return LeafDeal::of_counts(counts); };
  EXPECT_TRUE(deal({3, 1, 2}) == deal({3, 1, 2}));
  EXPECT_TRUE(deal({2, 2}) == LeafDeal::even(4, 2));
  EXPECT_FALSE(deal({3, 1, 2}) == deal({1, 3, 2})) << "as many leaves of as many ranks";
  EXPECT_FALSE(deal({3, 1}) == deal({3, 1, 2}));
  EXPECT_FALSE(deal({3, 1}) == LeafDeal());
  EXPECT_TRUE(LeafDeal() == LeafDeal());
}

TEST(LeafDeal, RefusesARankWithoutLeaves) {
  expect_error<DistError>(
      [] {
        (void)LeafDeal::of_counts(std::vector<int64_t>{3, 0, 2});
      },
      "[leaf_deal] rank 1: expected at least one leaf, got 0");
  expect_error<DistError>([] { (void)LeafDeal::of_counts(std::vector<int64_t>{-1}); }, "rank 0");
  expect_error<DistError>([] { (void)LeafDeal::of_counts({}); }, "at least one rank");
}

TEST(LeafDeal, ADealOfOtherLeavesOrRanksIsRefusedByItsNumbers) {
  const LeafDeal deal = LeafDeal::even(8, 2);
  EXPECT_NO_THROW(check_deal("op", deal, 8, 2));
  expect_error<DistError>([&] { check_deal("op", deal, 9, 2); },
                          "[op] deal: expected 9 leaves for 2 ranks, got 8 for 2.");
  expect_error<DistError>([&] { check_deal("op", deal, 8, 3); }, "8 leaves for 3 ranks");
  expect_error<DistError>([&] { check_deal("op", LeafDeal(), 8, 2); }, "got 0 for 0");
  expect_error<DistError>([&] { check_deal("op", deal, 0, 2); }, "Set tree_leaves");
}

TEST(LeafDeal, OnlyUnevenDealsHaveAnIdentityAndEachItsOwn) {
  EXPECT_EQ(LeafDeal().identity(), 0u);
  EXPECT_EQ(LeafDeal::even(8, 3).identity(), 0u);
  EXPECT_EQ(LeafDeal::of_counts(std::vector<int64_t>{2, 3, 3}).identity(), 0u) << "as even";
  std::set<uint64_t> identities = {0};
  for (int64_t first = 1; first < 9; ++first) {
    if (first == 4) continue;  // as even
    identities.insert(LeafDeal::of_counts(std::vector<int64_t>{first, 9 - first}).identity());
  }
  EXPECT_EQ(identities.size(), 8u);
}

TEST(LeafDeal, OneRankAddsHalvesOfHalves) {
  EXPECT_EQ(sum_of_one_rank(8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(sum_of_one_rank(1), "0");
}

TEST(LeafDeal, WhereLeavesAreNoPowerOfTwoTheRestJoinsFromTheRight) {
  EXPECT_EQ(sum_of_one_rank(7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(sum_of_one_rank(3), "((0+1)+2)");
}

RC_GTEST_PROP(LeafDeal, AnyNumberOfRanksMakesTheSameSum, ()) {
  const int64_t leaves = *rc::gen::inRange<int64_t>(1, 70);
  const int ranks = *rc::gen::inRange(1, static_cast<int>(leaves) + 1);
  RC_ASSERT(whole_sum(LeafDeal::even(leaves, ranks)) == sum_of_one_rank(leaves));
}

RC_GTEST_PROP(LeafDeal, AnyDealMakesTheSameSum, ()) {
  const auto ranks = *rc::gen::inRange<size_t>(1, 12);
  const LeafDeal deal = LeafDeal::of_counts(*rc::gen::container<std::vector<int64_t>>(
      ranks, rc::gen::oneOf(rc::gen::inRange<int64_t>(1, 4), rc::gen::inRange<int64_t>(1, 40))));
  RC_ASSERT(whole_sum(deal) == sum_of_one_rank(deal.leaves()));
}

}  // namespace
}  // namespace lockstep::dist
