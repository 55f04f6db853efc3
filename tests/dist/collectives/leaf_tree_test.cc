#include "dist/collectives/leaf_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

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
std::vector<std::string> sums_of_rank(int64_t leaves, int rank, int ranks) {
  LeafStack stack;
  Texts texts;
  const LeafRange own = leaves_of_rank(leaves, rank, ranks);
  for (int64_t leaf = own.first; leaf < own.end; ++leaf) {
    texts.push(std::to_string(leaf), stack.push({leaf, leaf + 1}));
  }
  return texts.texts();
}

std::string whole_sum(int64_t leaves, int ranks) {
  const std::vector<uint8_t> joins = joins_over_ranks(leaves, ranks);
  Texts texts;
  size_t at = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const std::string& sum : sums_of_rank(leaves, rank, ranks)) texts.push(sum, joins[at++]);
  }
  EXPECT_EQ(at, joins.size());
  EXPECT_EQ(texts.texts().size(), 1u);
  return texts.texts().front();
}

TEST(LeafTree, RanksHaveWholeLeavesAsEvenAsTheyGo) {
  EXPECT_EQ(leaves_of_rank(8, 0, 3), (LeafRange{0, 2}));
  EXPECT_EQ(leaves_of_rank(8, 1, 3), (LeafRange{2, 5}));
  EXPECT_EQ(leaves_of_rank(8, 2, 3), (LeafRange{5, 8}));
}

TEST(LeafTree, SubtreesBeginAtMultiplesOfTheirSize) {
  EXPECT_THAT(subtrees({0, 8}), ElementsAre(LeafRange{0, 8}));
  EXPECT_THAT(subtrees({2, 5}), ElementsAre(LeafRange{2, 4}, LeafRange{4, 5}));
  EXPECT_THAT(subtrees({5, 8}), ElementsAre(LeafRange{5, 6}, LeafRange{6, 8}));
  EXPECT_THAT(subtrees({1, 8}), ElementsAre(LeafRange{1, 2}, LeafRange{2, 4}, LeafRange{4, 8}));
}

TEST(LeafTree, OneRankAddsHalvesOfHalves) {
  EXPECT_EQ(whole_sum(8, 1), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(whole_sum(1, 1), "0");
}

TEST(LeafTree, WhereLeavesAreNoPowerOfTwoTheRestJoinsFromTheRight) {
  EXPECT_EQ(whole_sum(7, 1), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_EQ(whole_sum(3, 1), "((0+1)+2)");
}

RC_GTEST_PROP(LeafTree, AnyNumberOfRanksMakesTheSameSum, ()) {
  const int64_t leaves = *rc::gen::inRange<int64_t>(1, 70);
  const int ranks = *rc::gen::inRange(1, static_cast<int>(leaves) + 1);
  RC_ASSERT(whole_sum(leaves, ranks) == whole_sum(leaves, 1));
}

TEST(LeafTree, TheStackIsAsDeepAsTheTreeIsHigh) {
  EXPECT_EQ(stack_depth({0, 1}), 1);
  EXPECT_EQ(stack_depth({0, 8}), 4);
  EXPECT_EQ(stack_depth({4, 8}), 3);
  EXPECT_EQ(stack_depth({6, 8}), 2);
}

}  // namespace
}  // namespace lockstep::dist
