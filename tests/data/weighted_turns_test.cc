#include "data/weighted_turns.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

std::vector<double> weights_for_turns(const std::vector<int>& parts) {
  std::vector<double> weights;
  for (const int part : parts) weights.push_back(1 + part);
  return weights;
}

TEST(WeightedTurns, EverySourceCountsItsTurns) {
  const std::vector<double> weights = {0.5, 3, 1e-3, 2};
  for (const uint64_t seed : {0, 1, 2}) {
    const WeightedTurns turns(weights, seed);
    std::vector<int64_t> taken(weights.size());
    for (int64_t number = 0; number < 20'000; ++number) {
      const WeightedTurns::Turn turn = turns.turn(number);
      ASSERT_EQ(turn.position, taken[turn.source]++) << number;
    }
  }
}

TEST(WeightedTurns, SharesAreThoseOfTheWeightsInEveryStretch) {
  const std::vector<double> weights = {5, 3, 1.5, 0.5};
  const WeightedTurns turns(weights, 7);
  for (const int64_t first : {int64_t{0}, int64_t{12'345}, int64_t{1} << 33}) {
    std::vector<double> taken(weights.size());
    for (int64_t i = 0; i < 1000; ++i) {
      taken[turns.turn(first + i).source] += 1;
      for (size_t source = 0; source < weights.size(); ++source) {
        EXPECT_NEAR(taken[source], static_cast<double>(i + 1) * weights[source] / 10, 3.5);
      }
    }
  }
}

TEST(WeightedTurns, OneSourceHasAllTurns) {
  const WeightedTurns turns(std::vector<double>{2}, 3);
  for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{1} << 40, (int64_t{1} << 50) + 3}) {
    EXPECT_EQ(turns.turn(number).source, 0U);
    EXPECT_EQ(turns.turn(number).position, number);
  }
}

TEST(WeightedTurns, DependOnTheSeed) {
  const std::vector<double> weights = {1, 1};
  const WeightedTurns one(weights, 1), two(weights, 2);
  int different = 0;
  for (int64_t number = 0; number < 100; ++number) {
    if (one.turn(number).source != two.turn(number).source) ++different;
  }
  EXPECT_GT(different, 0);
}

TEST(WeightedTurns, WeightsWithoutAShareAreRefused) {
  const auto complaint = [](const std::vector<double>& weights) {
    return message_of<ConfigError>([&] { WeightedTurns(weights, 0); });
  };
  EXPECT_TRUE(
      says(complaint({1, 1e-12}), "the weight of source 1 of a mixture is 1e-12: expected"));
  EXPECT_TRUE(says(complaint({1, 0, 1}), "the weight of source 1 of a mixture is 0"));
  EXPECT_TRUE(says(complaint({-1, 2}), "the weight of source 0 of a mixture is -1"));
}

RC_GTEST_PROP(WeightedTurns, PositionsGoOnFromAnyNumber, (uint64_t seed)) {
  const auto weights = weights_for_turns(
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))));
  const WeightedTurns turns(weights, seed);
  const auto first = *rc::gen::inRange(int64_t{0}, int64_t{1} << 52);
  std::vector<int64_t> next(weights.size(), -1);
  for (int64_t number = first; number < first + 200; ++number) {
    const WeightedTurns::Turn turn = turns.turn(number);
    int64_t& expected = next[turn.source];
    RC_ASSERT(turn.position >= 0 && turn.position <= number);
    RC_ASSERT(expected == -1 || turn.position == expected);
    expected = turn.position + 1;
  }
}

}  // namespace
}  // namespace lockstep::train
