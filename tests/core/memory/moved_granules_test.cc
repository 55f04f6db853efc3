// Moving memory that may be mapped at two addresses at once, as that of GPUs and of `host` may.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/waits.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/units.h"
#include "tests/core/memory/fake_runtime.h"

namespace lockstep {
namespace {

const Stream kOnly = FakeRuntime::stream(0);

struct MovedGranules : ::testing::Test {
  MovedGranules() {
    runtime.memory().twice = true;
    AllocatorOptions options;
    options.reserve_ratio = 1;
    allocator.set_options(options);
  }
  ~MovedGranules() override {
    EXPECT_EQ(runtime.memory().wrong_calls, 0) << runtime.memory().wrong_call;
  }

  /// `count` blocks of 4 MiB side by side.
  std::vector<Block> blocks_in_a_row(size_t count) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back(allocator.allocate(4 * kMiB, kOnly));
    return blocks;
  }
  /// Queues work that fills a block.
  void fill(const Block& block, int value) {
    runtime.launch(kOnly, [=] { std::memset(block.data, value, block.bytes); });
  }
  int64_t stitched() const { return allocator.memory_stats().num_stitched; }
  int64_t reserved() const { return allocator.stats().reserved; }

  FakeRuntime runtime{96 * kMiB};
  CachingAllocator allocator{FakeRuntime::kDevice, runtime.memory()};
};

TEST_F(MovedGranules, NobodyWaitsForTheWorkThatUsesThem) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  for (const Block& block : blocks) fill(block, 1);
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  const int64_t before = reserved();
  const int64_t waits = hidden_waits();
  const size_t queued = runtime.queued(kOnly);
  const Block large = allocator.allocate(16 * kMiB, kOnly);
  EXPECT_EQ(stitched(), 1);
  EXPECT_LE(reserved(), before + static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_GE(runtime.queued(kOnly), queued) << "nothing ran";
  fill(large, 2);
  runtime.run(kOnly);  // the work queued before has the old addresses, which must still be mapped
  const auto* const bytes = static_cast<const unsigned char*>(large.data);
  EXPECT_EQ(std::count(bytes, bytes + large.bytes, 2), static_cast<int64_t>(large.bytes));
  for (size_t i = 1; i < 8; i += 2) {
    EXPECT_EQ(*static_cast<const unsigned char*>(blocks[i].data), 1);
    allocator.free(blocks[i]);
  }
}

TEST_F(MovedGranules, TheirOldAddressesAreNoMemory) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  (void)allocator.allocate(16 * kMiB, kOnly);
  size_t in_snapshot = 0;
  for (const SegmentInfo& segment : allocator.snapshot().segments) {
    in_snapshot += segment.total_size;
  }
  EXPECT_EQ(static_cast<int64_t>(in_snapshot), reserved());
  EXPECT_EQ(runtime.memory().taken(), in_snapshot);
}

TEST_F(MovedGranules, TheirOldAddressesGoWhenAsMuchAgainHasMoved) {
  std::vector<Block> live = blocks_in_a_row(8);
  const int unmaps = runtime.memory().unmaps;
  bool ran = false;
  runtime.launch(kOnly, [&] { ran = true; });
  int moves = 0;
  while (runtime.memory().unmaps == unmaps && moves < 50) {
    // Every other block goes, and one as large as all of these comes.
    std::vector<Block> kept;
    for (size_t i = 0; i < live.size(); ++i) {
      i % 2 == 0 ? allocator.free(live[i]) : kept.push_back(live[i]);
    }
    const int64_t before = stitched();
    const Block large = allocator.allocate(16 * kMiB, kOnly);
    moves += static_cast<int>(stitched() - before);
    allocator.free(large);
    live = kept;
    while (live.size() < 8) live.push_back(allocator.allocate(4 * kMiB, kOnly));
    std::ranges::sort(live, {}, &Block::data);
  }
  EXPECT_TRUE(ran) << "after the work that was queued before";
  EXPECT_GT(moves, 1);
}

TEST_F(MovedGranules, CachedMemoryGoesBackFromBothAddresses) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  const Block large = allocator.allocate(16 * kMiB, kOnly);
  allocator.free(large);
  for (size_t i = 1; i < 8; i += 2) allocator.free(blocks[i]);
  EXPECT_EQ(stitched(), 1);
  allocator.empty_cache();
  EXPECT_EQ(runtime.memory().taken(), 0u);
  EXPECT_EQ(reserved(), 0);
}

TEST_F(MovedGranules, TheirOldAddressesGoAfterTheirWorkThoughItsMarkCannotBeAskedFor) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  bool ran = false;
  runtime.launch(kOnly, [&] { ran = true; });
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  allocator.free(allocator.allocate(16 * kMiB, kOnly));
  for (size_t i = 1; i < 8; i += 2) allocator.free(blocks[i]);
  ASSERT_EQ(stitched(), 1);
  ASSERT_FALSE(ran);
  runtime.failing_queries = 1;
  runtime.memory().meanwhile = [&] { EXPECT_TRUE(ran); };
  allocator.empty_cache();
  EXPECT_EQ(runtime.failing_queries, 0);
  EXPECT_EQ(runtime.memory().taken(), 0u);
  EXPECT_EQ(reserved(), 0);
}

TEST_F(MovedGranules, StayWhereTheyWereIfTheDriverFails) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  const int64_t before = reserved();
  runtime.memory().failing_maps = -1;
  EXPECT_THROW((void)allocator.allocate(16 * kMiB, kOnly), OutOfMemoryError);
  EXPECT_LE(reserved(), before);
  EXPECT_EQ(static_cast<int64_t>(runtime.memory().taken()), reserved());
  runtime.memory().failing_maps = 0;
  const Block large = allocator.allocate(16 * kMiB, kOnly);
  std::memset(large.data, 1, large.bytes);
}

TEST_F(MovedGranules, OfADestroyedStreamAreUnmappedAtOnce) {
  const std::vector<Block> blocks = blocks_in_a_row(8);
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  runtime.forget(kOnly);
  const int unmaps = runtime.memory().unmaps;
  (void)allocator.allocate(16 * kMiB, kOnly);
  EXPECT_EQ(stitched(), 1);
  EXPECT_GT(runtime.memory().unmaps, unmaps);
}

/// Blocks hold what the work of their owners wrote, which runs at any time after it was queued,
/// however often memory is moved.
RC_GTEST_PROP(MovedGranulesOfAnyProgram, KeepWhatTheirOwnersWrote, ()) {
  FakeRuntime runtime(64 * kMiB);
  runtime.memory().twice = true;
  AllocatorOptions options;
  options.reserve_ratio = 1;
  {
    CachingAllocator allocator(FakeRuntime::kDevice, runtime.memory(), options);
    std::vector<std::pair<Block, unsigned char>> live;
    bool is_good = true;
    unsigned char next = 0;
    const int operations = *rc::gen::inRange(1, 80);
    for (int i = 0; i < operations; ++i) {
      const int what = *rc::gen::inRange(0, 8);
      if (what < 4) {
        const size_t bytes = *rc::gen::inRange<size_t>(1, 13 * kMiB);
        try {
          const Block block = allocator.allocate(bytes, kOnly);
          ++next;
          runtime.launch(kOnly, [=] { std::memset(block.data, next, bytes); });
          live.emplace_back(block, next);
        } catch (const OutOfMemoryError&) {
        }
      } else if (what < 7) {
        if (live.empty()) continue;
        const size_t which = *rc::gen::inRange<size_t>(0, live.size());
        const auto [block, value] = live[which];
        runtime.launch(kOnly, [=, &is_good] {
          is_good &= *static_cast<const unsigned char*>(block.data) == value;
        });
        allocator.free(block);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const int steps = *rc::gen::inRange(0, 10);
        for (int step = 0; step < steps; ++step) (void)runtime.run_one(kOnly);
      }
    }
    runtime.run(kOnly);
    RC_ASSERT(is_good);
    for (const auto& [block, value] : live) {
      RC_ASSERT(*static_cast<const unsigned char*>(block.data) == value);
      allocator.free(block);
    }
    RC_CLASSIFY(allocator.memory_stats().num_stitched > 0, "moved");
    allocator.empty_cache();
    RC_ASSERT(runtime.memory().taken() == 0u);
  }
  RC_ASSERT(runtime.memory().wrong_calls == 0);
  RC_ASSERT(runtime.memory().ranges() == 0u);
}

}  // namespace
}  // namespace lockstep
