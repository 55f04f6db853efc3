#include "compile/size_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SizeTerms, NumbersAreProductsOfSizes) {
  SizeTerms terms({{2, 16}, {3, 16}, {3, 20}});
  EXPECT_THAT(terms.find({2, 3, 3}), ElementsAre(SizeTerm{1, {0}, 0}));
  EXPECT_THAT(terms.find({12 * 16, 12 * 16, 12 * 20}), ElementsAre(SizeTerm{12, {1}, 0}));
  EXPECT_THAT(terms.find({32, 48, 60}), ElementsAre(SizeTerm{1, {0, 1}, 0}));
  EXPECT_THAT(terms.find({2 * 256, 3 * 256, 3 * 400}), ElementsAre(SizeTerm{1, {0, 1, 1}, 0}));
}

TEST(SizeTerms, NumbersAreASizeAndANumber) {
  SizeTerms terms({{9, 5}, {12, 5}, {20, 7}});
  EXPECT_THAT(terms.find({8, 11, 19}), ElementsAre(SizeTerm{1, {0}, -1}));
  EXPECT_THAT(terms.find({11, 11, 15}), ElementsAre(SizeTerm{2, {1}, 1}));
}

TEST(SizeTerms, FewSamplesMayLeaveSeveralTerms) {
  EXPECT_THAT(SizeTerms({{4}, {8}}).find({16, 64}), SizeIs(2));  // a square, or 12 s - 32
  EXPECT_THAT(SizeTerms({{4}, {8}, {5}}).find({16, 64, 25}), ElementsAre(SizeTerm{1, {0, 0}, 0}));
  EXPECT_THAT(SizeTerms({{4, 2}, {8, 4}}).find({4, 8}), SizeIs(2));  // both sizes were doubled
}

TEST(SizeTerms, OtherNumbersHaveNone) {
  SizeTerms terms({{32}, {33}, {40}});
  EXPECT_THAT(terms.find({16, 16, 20}), IsEmpty());  // halves
  EXPECT_THAT(terms.find({32, 40, 40}), IsEmpty());  // the next multiple of 8
  EXPECT_THAT(terms.find({0, 1, 0}), IsEmpty());
}

TEST(SizeTerms, ATermGivesTheNumberOfOtherSizes) {
  const std::vector<int64_t> sizes = {3, 7};
  EXPECT_EQ((SizeTerm{2, {0, 1, 1}, 0}).value(sizes), 2 * 3 * 7 * 7);
  EXPECT_EQ((SizeTerm{2, {1}, -3}).value(sizes), 11);
}

}  // namespace
}  // namespace lockstep::compiler
