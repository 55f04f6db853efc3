#include "data/loader/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "core/base/error.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> order(const Sampler& sampler, int64_t epoch = 0) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < sampler.size(); ++i) numbers.push_back(sampler.index(epoch, i));
  return numbers;
}

TEST(Sampler, SequentialIsInOrder) {
  EXPECT_THAT(order(SequentialSampler(3)), ElementsAre(0, 1, 2));
  EXPECT_TRUE(order(SequentialSampler(0)).empty());
  EXPECT_THROW(SequentialSampler(-1), Error);
}

TEST(Sampler, RandomTakesEachOnceInAnOrderOfItsEpoch) {
  const RandomSampler sampler(100, 7);
  const std::vector<int64_t> first = order(sampler, 0);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 100U);
  EXPECT_EQ(first, order(RandomSampler(100, 7), 0));
  EXPECT_NE(first, order(sampler, 1));
  EXPECT_NE(first, order(RandomSampler(100, 8), 0));
  EXPECT_FALSE(std::ranges::is_sorted(first));
}

TEST(Sampler, WeightedDrawsByWeight) {
  const WeightedSampler sampler({1, 0, 3}, 40000, 5);
  std::vector<int64_t> counts(3);
  for (const int64_t number : order(sampler)) ++counts.at(static_cast<size_t>(number));
  EXPECT_EQ(counts[1], 0);
  // Five standard deviations, sqrt(40000 * 1/4 * 3/4) = 87.
  EXPECT_NEAR(static_cast<double>(counts[0]), 10000, 5 * 87);
  EXPECT_NE(order(sampler, 0), order(sampler, 1));
  EXPECT_THAT(order(WeightedSampler({0, 0, 2, 0}, 3)), ElementsAre(2, 2, 2));
}

TEST(Sampler, WeightsThatSayNothingAreRefused) {
  EXPECT_THROW(WeightedSampler({0, 0}, 1), Error);
  EXPECT_THROW(WeightedSampler({}, 1), Error);
  EXPECT_THROW(WeightedSampler({1, -1}, 1), Error);
  EXPECT_THROW(WeightedSampler({std::numeric_limits<double>::infinity()}, 1), Error);
  EXPECT_THROW(WeightedSampler({1}, -1), Error);
}

TEST(Sampler, RanksShareWhatThereIs) {
  const auto all = std::make_shared<SequentialSampler>(5);
  EXPECT_THAT(order(DistributedSampler(all, 0, 2)), ElementsAre(0, 2, 4));
  EXPECT_THAT(order(DistributedSampler(all, 1, 2)), ElementsAre(1, 3, 0));
  EXPECT_THAT(order(DistributedSampler(all, 0, 2, true)), ElementsAre(0, 2));
  EXPECT_THAT(order(DistributedSampler(all, 1, 2, true)), ElementsAre(1, 3));
  EXPECT_THAT(order(DistributedSampler(all, 6, 7)), ElementsAre(1));
  EXPECT_THROW(DistributedSampler(all, 2, 2), Error);
  EXPECT_THROW(DistributedSampler(all, -1, 2), Error);
  EXPECT_THROW(DistributedSampler(std::make_shared<SequentialSampler>(0), 0, 2), Error);
}

}  // namespace
}  // namespace lockstep::data
