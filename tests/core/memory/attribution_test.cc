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

TEST(MemoryAttribution, TheTableHasALineForEachShare) {
  EXPECT_EQ(memory_table(memory_by_operator(blocks_of_two_layers())),
            "           bytes   share   blocks\n"
            "             350  50.0 %        2  mm\n"
            "             300  42.9 %        1  add\n"
            "              50   7.1 %        1  outside operators\n");
  EXPECT_EQ(memory_table(memory_by_operator(blocks_of_two_layers()), 3).find("others"),
            std::string::npos);
  EXPECT_EQ(memory_table({}), "           bytes   share   blocks\n");
  const std::vector<MemoryShare> nothing = {{"none", 0, 2}};
  EXPECT_EQ(memory_table(nothing),
            "           bytes   share   blocks\n"
            "               0   0.0 %        2  none\n");
  std::vector<MemoryShare> many(22, MemoryShare{"x", 1, 3});
  const std::string table = memory_table(many);
  EXPECT_NE(table.find("               2   9.1 %        6  2 others\n"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace lockstep
