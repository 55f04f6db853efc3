#include "dist/local/fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::dist {
namespace {

using testing::ElementsAre;

TEST(Fragments, HaveAboutEqualNumbersOfElements) {
  const std::vector<int64_t> elements = {10, 10, 10, 10, 40};
  EXPECT_THAT(fragment_ends(elements, 1), ElementsAre(5));
  EXPECT_THAT(fragment_ends(elements, 2), ElementsAre(4, 5));
  EXPECT_THAT(fragment_ends(elements, 4), ElementsAre(2, 4, 5));
}

TEST(Fragments, AreNoMoreThanParameters) {
  const std::vector<int64_t> elements = {5, 5};
  EXPECT_THAT(fragment_ends(elements, 9), ElementsAre(1, 2));
  EXPECT_TRUE(fragment_ends({}, 3).empty());
}

TEST(Fragments, AreOwnedInEqualPartsOfWholeBlocks) {
  // 2 + 1 + 1 blocks of 256.
  const std::vector<int64_t> elements = {257, 1, 256};
  EXPECT_EQ(owned_elements(elements, 1), 4 * 256);
  EXPECT_EQ(owned_elements(elements, 2), 2 * 256);
  EXPECT_EQ(owned_elements(elements, 3), 2 * 256);
  EXPECT_EQ(owned_elements(elements, 5), 256);
}

TEST(Fragments, AreAveragedInTurnOnceInAPeriod) {
  for (int64_t number = 0; number < 4; ++number) {
    std::vector<int64_t> averaged;
    for (int64_t steps = 1; steps <= 20; ++steps) {
      if (steps_since_average(number, 4, 10, steps) == 0) averaged.push_back(steps);
    }
    // Fragment 0 after steps 10 and 20, each next one two or three steps earlier.
    const int64_t first = 10 - number * 10 / 4;
    EXPECT_THAT(averaged, ElementsAre(first, first + 10)) << number;
  }
}

}  // namespace
}  // namespace lockstep::dist
