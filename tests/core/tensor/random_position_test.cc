#include "core/tensor/random_position.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(RandomPosition, ADistanceLeadsFromOneKeyToAnother) {
  const std::vector<RandomKey> keys = {{.seed = 4, .step = 0, .micro_batch = 0, .call = 0},
                                       {.seed = 4, .step = 9, .micro_batch = 2, .call = 1 << 19},
                                       {.seed = 4, .step = 10, .micro_batch = 1, .call = 3}};
  for (const RandomKey& from : keys) {
    for (const RandomKey& to : keys) {
      const RandomPosition begin = position_of(from), way = distance(from, to);
      const RandomPosition end = position_of(to);
      const uint64_t low = begin.low + way.low;
      EXPECT_EQ(low, end.low);
      EXPECT_EQ(begin.high + way.high + (low < begin.low ? 1 : 0), end.high);
      EXPECT_EQ(way.key[0], end.key[0]);
    }
  }
}

}  // namespace
}  // namespace lockstep
