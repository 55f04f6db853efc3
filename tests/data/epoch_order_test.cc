#include "data/epoch_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace lockstep::train {
namespace {

RC_GTEST_PROP(EpochOrder, IsAPermutation, ()) {
  const auto count = *rc::gen::inRange<int64_t>(1, 3000);
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const auto epoch = *rc::gen::inRange<int64_t>(0, 1000);
  std::vector<bool> seen(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = shuffled(seed, epoch, count, i);
    RC_ASSERT(place >= 0 && place < count);
    RC_ASSERT(!seen[static_cast<size_t>(place)]);
    seen[static_cast<size_t>(place)] = true;
  }
}

TEST(EpochOrder, EveryOrderOfThreeComesUpEquallyOften) {
  std::map<std::vector<int64_t>, int> counts;
  for (int64_t epoch = 0; epoch < 6000; ++epoch) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 3; ++i) order.push_back(shuffled(7, epoch, 3, i));
    ++counts[order];
  }
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000) * (count - 1000) / 1000.0;
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: exceeded with probability 0.001
}

TEST(EpochOrder, NeighboursAreSentApart) {
  // In a random order, the distance between two neighbours' positions is nearly uniform.
  constexpr int64_t kCount = 1000;
  int close = 0;
  for (int64_t i = 0; i + 1 < kCount; ++i) {
    const int64_t distance = shuffled(1, 0, kCount, i) - shuffled(1, 0, kCount, i + 1);
    close += distance >= -10 && distance <= 10 ? 1 : 0;
  }
  EXPECT_GT(close, 3);  // 20 expected
  EXPECT_LT(close, 45);
}

TEST(EpochOrder, EpochsAndSeedsDiffer) {
  std::set<std::vector<int64_t>> orders;
  for (const uint64_t seed : {1ULL, 2ULL, 1ULL << 32}) {
    for (const int64_t epoch : {0, 1, 2}) {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < 20; ++i) order.push_back(shuffled(seed, epoch, 20, i));
      orders.insert(order);
    }
  }
  EXPECT_EQ(orders.size(), 9u);
}

}  // namespace
}  // namespace lockstep::train
