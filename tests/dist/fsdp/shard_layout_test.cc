#include "dist/fsdp/shard_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace lockstep::dist {
namespace {

TEST(ShardLayout, CutsAtBlocksAndPadsToEqualShards) {
  const ShardLayout layout(std::vector<int64_t>{5000, 10, 4096}, 2);
  EXPECT_EQ(layout.offset(0), 0);
  EXPECT_EQ(layout.offset(1), 8192);
  EXPECT_EQ(layout.offset(2), 12288);
  EXPECT_EQ(layout.shard_elements(), 8192);
  EXPECT_EQ(layout.elements(), 16384);
  EXPECT_EQ(layout.slices(0), (std::vector<ShardSlice>{{0, 0, 5000, 0}}));
  EXPECT_EQ(layout.slices(1), (std::vector<ShardSlice>{{1, 0, 10, 0}, {2, 0, 4096, 4096}}));
}

RC_GTEST_PROP(ShardLayout, EveryElementIsInExactlyOneShardAtItsPlaceOfTheArena, ()) {
  const int ranks = *rc::gen::inRange(1, 9);
  const auto sizes =
      *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 3 * 4096));
  const ShardLayout layout(sizes, ranks);
  std::vector<int> owners(static_cast<size_t>(layout.elements()));
  std::vector<int64_t> covered(sizes.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (const ShardSlice& each : layout.slices(rank)) {
      RC_ASSERT(each.size() > 0);
      RC_ASSERT(each.first % kShardBlock == 0);
      RC_ASSERT(each.offset >= 0 && each.offset + each.size() <= layout.shard_elements());
      const int64_t in_arena = rank * layout.shard_elements() + each.offset;
      RC_ASSERT(in_arena == layout.offset(each.parameter) + each.first);
      covered[each.parameter] += each.size();
      for (int64_t i = 0; i < each.size(); ++i) ++owners[static_cast<size_t>(in_arena + i)];
    }
  }
  RC_ASSERT(covered == sizes);
  for (const ShardLayout::Gap& gap : layout.gaps()) {
    RC_ASSERT(gap.first < gap.end);
    for (int64_t i = gap.first; i < gap.end; ++i) ++owners[static_cast<size_t>(i)];
  }
  for (const int count : owners) RC_ASSERT(count == 1);
}

RC_GTEST_PROP(ShardLayout, PaddingIsLessThanOneBlockARankAndAParameter, ()) {
  const int ranks = *rc::gen::inRange(1, 9);
  const auto sizes =
      *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, 100'000));
  const ShardLayout layout(sizes, ranks);
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  RC_ASSERT(layout.elements() - sum <
            static_cast<int64_t>(sizes.size() + static_cast<size_t>(ranks)) * kShardBlock);
}

}  // namespace
}  // namespace lockstep::dist
