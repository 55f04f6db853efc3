#include "core/meta_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/free_list_allocator.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr Stream kStream{};

RC_GTEST_PROP(MetaAllocator, CountsWhatTheCpuAllocatorHandsOut, ()) {
  FreeListAllocator cpu(size_t{1} << 36);
  MetaAllocator meta;
  std::vector<std::pair<Block, Block>> alive;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  for (const auto& [choice, number] : steps) {
    if (choice % 5 < 3 || alive.empty()) {
      const size_t bytes = size_t{number} * (choice % 2 == 0 ? 1 : 777);
      alive.emplace_back(cpu.allocate(bytes, kStream), meta.allocate(bytes, kStream));
      RC_ASSERT((alive.back().second.data == nullptr));
      RC_ASSERT(alive.back().second.bytes == alive.back().first.bytes);
    } else {
      const auto at = alive.begin() + static_cast<long>(number % alive.size());
      cpu.free(at->first);
      meta.free(at->second);
      alive.erase(at);
    }
    if (choice == 0) {
      cpu.reset_peak();
      meta.reset_peak();
    }
    RC_ASSERT(meta.stats().allocated == cpu.stats().allocated);
    RC_ASSERT(meta.stats().peak_allocated == cpu.stats().peak_allocated);
    RC_ASSERT(meta.stats().reserved == cpu.stats().reserved);
    RC_ASSERT(meta.stats().allocations == cpu.stats().allocations);
  }
}

TEST(MetaAllocator, HoldsMoreThanAnyMachine) {
  MetaAllocator meta;
  const Block block = meta.allocate(size_t{1} << 60, kStream);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(meta.stats().allocated, int64_t{1} << 60);
  EXPECT_EQ(meta.stats().system_calls, 0);
  expect_error<OutOfMemoryError>([&] { meta.allocate(SIZE_MAX, kStream); }, "[allocator]");
  meta.free(block);
  EXPECT_EQ(meta.stats().allocated, 0);
}

TEST(MetaAllocator, ZeroBytesGiveABlockThatMayBeFreed) {
  MetaAllocator meta;
  const Block none = meta.allocate(0, kStream);
  meta.free(none);
  EXPECT_EQ(meta.stats().allocations, 0);
  EXPECT_EQ(meta.stats().reserved, 0);
  meta.free(meta.allocate(kMiB, kStream));
  EXPECT_EQ(meta.stats().allocations, 1);
}

}  // namespace
}  // namespace lockstep
