#include "dist/collectives/leaf_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

TEST(LeafTree, SubtreesBeginAtMultiplesOfTheirSize) {
  EXPECT_THAT(subtrees({0, 8}), ElementsAre(LeafRange{0, 8}));
  EXPECT_THAT(subtrees({2, 5}), ElementsAre(LeafRange{2, 4}, LeafRange{4, 5}));
  EXPECT_THAT(subtrees({5, 8}), ElementsAre(LeafRange{5, 6}, LeafRange{6, 8}));
  EXPECT_THAT(subtrees({1, 8}), ElementsAre(LeafRange{1, 2}, LeafRange{2, 4}, LeafRange{4, 8}));
}

TEST(LeafTree, TheStackIsAsDeepAsTheTreeIsHigh) {
  EXPECT_EQ(stack_depth({0, 1}), 1);
  EXPECT_EQ(stack_depth({0, 8}), 4);
  EXPECT_EQ(stack_depth({4, 8}), 3);
  EXPECT_EQ(stack_depth({6, 8}), 2);
}

}  // namespace
}  // namespace lockstep::dist
