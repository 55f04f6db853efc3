#include "core/memory/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using testing::ElementsAre;

BlockInfo block(size_t size, const char* op, const char* module,
                BlockInfo::State state = BlockInfo::State::kActiveAllocated) {
  BlockInfo info;
  info.size = size;
  info.state = state;
  info.context.op = op;
  info.context.module = module;
  return info;
}

std::vector<BlockInfo> blocks_of_two_layers() {
  return {block(100, "mm", "h.0"), block(300, "add", "h.1"), block(250, "mm", "h.1"),
          block(50, nullptr, ""), block(1000, "mm", "h.0", BlockInfo::State::kInactive)};
}

TEST(MemoryAttribution, AddsUpBlocksOnLoanByOriginTheLargestFirst) {
  EXPECT_THAT(memory_by_operator(blocks_of_two_layers()),
              ElementsAre(MemoryShare{"mm", 350, 2}, MemoryShare{"add", 300, 1},
                          MemoryShare{"outside operators", 50, 1}));
  EXPECT_THAT(memory_by_module(blocks_of_two_layers()),
              ElementsAre(MemoryShare{"h.1", 550, 2}, MemoryShare{"h.0", 100, 1},
                          MemoryShare{"outside modules", 50, 1}));
  EXPECT_TRUE(memory_by_module({}).empty());
}

TEST(MemoryAttribution, TheTableTakesSmallOnesTogether) {
  EXPECT_EQ(memory_table(memory_by_operator(blocks_of_two_layers()), 1),
            "           bytes   share   blocks\n"
            "             350  50.0 %        2  mm\n"
            "             350  50.0 %        2  2 others\n");
}

}  // namespace
}  // namespace lockstep
