// Pools of a CachingAllocator, their checkpoints, its statistics and history, and fork().

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/current_scope.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

struct AllocatorPools : ::testing::TestWithParam<bool> {
  FakeMemory memory{128 * kMiB, /*has_granules=*/GetParam()};
  CachingAllocator allocator{kCPU, memory};
  PoolId pool = allocator.create_pool();

  Block from_pool(size_t bytes) {
    const PoolGuard guard(allocator, pool);
    return allocator.allocate(bytes, kStream);
  }
  ~AllocatorPools() override { EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call; }
};
INSTANTIATE_TEST_SUITE_P(Segments, AllocatorPools, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "expandable" : "plain"; });

TEST_P(AllocatorPools, APoolSharesNoMemoryWithOthers) {
  const Block block = from_pool(2 * kMiB);
  allocator.free(block);
  EXPECT_NE(allocator.allocate(2 * kMiB, kStream).data, block.data);
  EXPECT_EQ(from_pool(2 * kMiB).data, block.data);
}

TEST_P(AllocatorPools, OnlyThreadsInsideTheGuardUseThePool) {
  const PoolGuard guard(allocator, pool);
  std::thread([&] { allocator.allocate(512, kStream); }).join();
  EXPECT_EQ(allocator.live_blocks(pool), 0);
  allocator.allocate(512, kStream);
  EXPECT_EQ(allocator.live_blocks(pool), 1);
  const PoolId inner = allocator.create_pool();
  {
    const PoolGuard other(allocator, inner);
    allocator.allocate(512, kStream);
  }
  allocator.allocate(512, kStream);
  EXPECT_EQ(allocator.live_blocks(pool), 2);
  EXPECT_EQ(allocator.live_blocks(inner), 1);
}

TEST_P(AllocatorPools, MemoryOfALivePoolStaysWhenTheCacheIsEmptied) {
  allocator.free(from_pool(4 * kMiB));
  const size_t taken = memory.taken();
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), taken);
  EXPECT_THROW(allocator.allocate(127 * kMiB, kStream), OutOfMemoryError);
}

TEST_P(AllocatorPools, AReleasedPoolGivesItsMemoryBackWithItsLastBlock) {
  const Block block = from_pool(4 * kMiB);
  allocator.release_pool(pool);
  EXPECT_GT(memory.taken(), 0u);
  std::memset(block.data, 1, block.bytes);
  allocator.free(block);
  EXPECT_EQ(memory.taken(), 0u);
  expect_error<DeviceError>([&] { allocator.release_pool(pool); }, "no pool");
  EXPECT_THROW(from_pool(1), DeviceError);
  EXPECT_THROW(allocator.checkpoint(pool), DeviceError);
}

TEST_P(AllocatorPools, ManyPoolsLeaveNothingBehind) {
  for (int i = 0; i < 50; ++i) {
    const PoolId each = allocator.create_pool();
    Block block;
    {
      const PoolGuard guard(allocator, each);
      block = allocator.allocate(3 * kMiB, kStream);
    }
    allocator.free(block);
    allocator.release_pool(each);
    EXPECT_EQ(memory.taken(), 0u);
    EXPECT_EQ(memory.ranges(), 0u);
  }
}

TEST_P(AllocatorPools, EachReleasedPoolWaitsForItsOwnBlocks) {
  const PoolId other = allocator.create_pool();
  EXPECT_EQ(other, pool + 1);
  const Block first = from_pool(4 * kMiB);
  Block second;
  {
    const PoolGuard guard(allocator, other);
    second = allocator.allocate(4 * kMiB, kStream);
  }
  const size_t each = memory.taken() / 2;
  allocator.release_pool(pool);
  allocator.release_pool(other);
  allocator.free(second);
  EXPECT_EQ(memory.taken(), each);
  expect_error<DeviceError>(
      [&] { allocator.live_blocks(other); },
      "[allocator] there is no pool 2: expected one that create_pool returned "
      "and that was not released.");
  allocator.free(first);
  EXPECT_EQ(memory.taken(), 0u);
  allocator.free(allocator.allocate(2 * kMiB, kStream));
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u) << "what served a pool serves others, which may be emptied";
}

// Restoring a pool to an earlier state.

struct PoolRestore : AllocatorPools {
  /// Restores the pool to `state`, expects exactly `blocks` to be live, and returns their new
  /// handles.
  std::vector<Block> restore(const PoolState& state, const std::vector<Block>& blocks) {
    std::vector<Block> restored = allocator.restore(pool, state);
    std::vector<void*> expected;
    std::vector<void*> found;
    for (const Block& block : blocks) expected.push_back(block.data);
    for (const Block& block : restored) found.push_back(block.data);
    std::ranges::sort(expected);
    std::ranges::sort(found);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(allocator.live_blocks(pool), static_cast<int64_t>(blocks.size()));
    return restored;
  }
};
INSTANTIATE_TEST_SUITE_P(Segments, PoolRestore, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "expandable" : "plain"; });

TEST_P(PoolRestore, BlocksThatWereFreedSinceAreOnLoanAgain) {
  const Block a = from_pool(2 * kMiB);
  const Block b = from_pool(3 * kMiB);
  const auto state = allocator.checkpoint(pool);
  allocator.free(a);
  allocator.free(b);
  for (const Block& block : restore(*state, {a, b})) allocator.free(block);
  EXPECT_EQ(allocator.live_blocks(pool), 0);
  EXPECT_EQ(allocator.wrong_frees(), 0);
}

TEST_P(PoolRestore, BlocksInTheMiddleOfASegmentComeBack) {
  std::vector<Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(from_pool(512 * (static_cast<size_t>(i) + 1)));
  allocator.free(blocks[1]);
  allocator.free(blocks[4]);
  const auto state = allocator.checkpoint(pool);
  for (const int i : {0, 2, 3, 5}) allocator.free(blocks[static_cast<size_t>(i)]);
  from_pool(100'000);  // reuses the memory of all freed blocks
  restore(*state, {blocks[0], blocks[2], blocks[3], blocks[5]});
}

TEST_P(PoolRestore, SmallBlocksThatWereFreedSinceAreOnLoanAgain) {
  std::vector<Block> blocks;
  for (size_t i = 1; i <= 4; ++i) blocks.push_back(from_pool(512 * i));
  const auto state = allocator.checkpoint(pool);
  const int64_t allocated = allocator.stats().allocated;
  for (const size_t i : {2, 0, 1}) allocator.free(blocks[i]);
  restore(*state, blocks);
  EXPECT_EQ(allocator.stats().allocated, allocated);
}

TEST_P(PoolRestore, BlocksThatCameSinceAreTakenBack) {
  const Block a = from_pool(2 * kMiB);
  const auto state = allocator.checkpoint(pool);
  const Block b = from_pool(2 * kMiB);
  restore(*state, {a});
  allocator.free(b);  // a stale handle: the restore freed the block
  EXPECT_EQ(allocator.wrong_frees(), 1);
  allocator.free(a);
  EXPECT_EQ(allocator.wrong_frees(), 1) << "a's loan never ended";
  EXPECT_EQ(allocator.live_blocks(pool), 0);
}

TEST_P(PoolRestore, ABlockFreedAfterTheCheckpointMayBeFreedAgainAfterTheRestore) {
  const Block a = from_pool(2 * kMiB);
  const auto state = allocator.checkpoint(pool);
  allocator.free(a);
  const std::vector<Block> again = restore(*state, {a});
  allocator.free(a);
  EXPECT_EQ(allocator.wrong_frees(), 1) << "the handle of the loan that ended";
  allocator.free(again[0]);
  EXPECT_EQ(allocator.live_blocks(pool), 0);
}

TEST_P(PoolRestore, AStateRestoresManyTimes) {
  const Block a = from_pool(1000);
  const Block b = from_pool(9 * kMiB);
  const auto state = allocator.checkpoint(pool);
  for (int i = 0; i < 3; ++i) {
    restore(*state, {a, b});
    from_pool(5 * kMiB);
    from_pool(700);
  }
  restore(*state, {a, b});
  EXPECT_EQ(allocator.stats().allocated, static_cast<int64_t>(a.bytes + b.bytes));
}

TEST_P(PoolRestore, BlocksComeBackToTheirOwnSegments) {
  std::vector<Block> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(from_pool(21 * kMiB));
  const auto state = allocator.checkpoint(pool);
  for (const Block& block : blocks) allocator.free(block);
  restore(*state, blocks);
}

TEST_P(PoolRestore, ABlockComesBackWithItsOriginAndTheSizeThatWasAskedFor) {
  const std::string module = "h.7";
  Block block;
  {
    const ModuleScope scope(module);
    block = from_pool(1000);
  }
  const Block large = from_pool(2 * kMiB);
  const auto state = allocator.checkpoint(pool);
  const DeviceMemoryStats before = allocator.memory_stats();
  allocator.free(block);
  allocator.free(large);
  restore(*state, {block, large});
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.requested_bytes.small_pool.current, 1000);
  EXPECT_EQ(stats.requested_bytes.large_pool.current, static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(stats.allocation.small_pool.current, before.allocation.small_pool.current);
  std::vector<std::string> modules;
  for (const SegmentInfo& segment : allocator.snapshot().segments) {
    for (const BlockInfo& info : segment.blocks) {
      if (info.state == BlockInfo::State::kActiveAllocated) modules.push_back(info.context.module);
    }
  }
  std::ranges::sort(modules);
  EXPECT_EQ(modules, (std::vector<std::string>{"", "h.7"}));
}

TEST_P(PoolRestore, EachStreamOfAPoolHasItsBlocksBack) {
  const Stream other{kCPU, 1};
  const Block a = from_pool(2 * kMiB);
  Block b;
  {
    const PoolGuard guard(allocator, pool);
    b = allocator.allocate(3 * kMiB, other);
  }
  const auto state = allocator.checkpoint(pool);
  allocator.free(a);
  allocator.free(b);
  EXPECT_EQ(allocator.live_blocks(pool), 0);
  restore(*state, {a, b});
}

TEST_P(PoolRestore, AnotherPoolsStateIsRefused) {
  from_pool(kMiB);
  const auto state = allocator.checkpoint(pool);
  const PoolId other = allocator.create_pool();
  expect_error<DeviceError>([&] { allocator.restore(other, *state); },
                            "[allocator] pool 2 cannot be restored: it has lost the segment at 0x",
                            "since the checkpoint.");
}

TEST(AllocatorStatistics, HavePyTorchsMeaning) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block block = allocator.allocate(256 * sizeof(float), kStream);
  DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.active_bytes.all.current, 1024);
  EXPECT_EQ(stats.allocation.small_pool.current, 1);
  EXPECT_EQ(stats.requested_bytes.all.current, 1024);
  EXPECT_EQ(stats.reserved_bytes.all.current, static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(stats.segment.all.current, 1);
  allocator.free(block);
  const Block large = allocator.allocate(3 * kMiB, kStream);
  stats = allocator.memory_stats();
  EXPECT_EQ(stats.allocated_bytes.all.freed, 1024);
  EXPECT_EQ(stats.allocated_bytes.all.allocated, static_cast<int64_t>(3 * kMiB) + 1024);
  EXPECT_EQ(stats.allocated_bytes.large_pool.peak, static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(stats.allocated_bytes.small_pool.peak, 1024);
  EXPECT_EQ(stats.num_device_alloc, 4) << "two granules made and mapped, twice";
  allocator.reset_accumulated_memory_stats();
  allocator.free(large);
  allocator.reset_peak_memory_stats();
  stats = allocator.memory_stats();
  EXPECT_EQ(stats.allocated_bytes.all.allocated, 0);
  EXPECT_EQ(stats.allocated_bytes.all.freed, static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(stats.allocated_bytes.all.peak, 0);
  EXPECT_EQ(stats.allocated_bytes.large_pool.peak, 0);
  EXPECT_EQ(stats.allocated_bytes.small_pool.peak, 0);
  EXPECT_EQ(stats.allocation.large_pool.peak, 0);
  EXPECT_EQ(stats.num_device_alloc, 0);
}

TEST(AllocatorStatistics, InactiveSplitsAreFreePartsOfPlainSegmentsInUse) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory, plain_segments());
  const auto splits = [&] {
    const DeviceMemoryStats stats = allocator.memory_stats();
    return std::pair(stats.inactive_split.all.current, stats.inactive_split_bytes.all.current);
  };
  using Splits = std::pair<int64_t, int64_t>;
  const Block block = allocator.allocate(512, kStream);
  constexpr auto kSegment = static_cast<int64_t>(2 * kMiB);
  EXPECT_EQ(splits(), (Splits{1, kSegment - 512}));
  const Block next = allocator.allocate(1024, kStream);
  allocator.free(block);
  EXPECT_EQ(splits(), (Splits{2, kSegment - 1024}));
  allocator.free(next);
  allocator.free(allocator.allocate(2048, kStream));  // joins the freed blocks
  allocator.free(allocator.allocate(100'000, kStream));
  EXPECT_EQ(splits(), (Splits{0, 0})) << "the segment is free as a whole";
  allocator.set_options({});
  const Block in_range = allocator.allocate(3 * kMiB, kStream);
  EXPECT_EQ(splits(), (Splits{0, 0})) << "a range has no such parts";
  allocator.free(in_range);
}

TEST(AllocatorStatistics, InactiveSplitsAreThoseOfAllStreams) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory, plain_segments());
  const Block here = allocator.allocate(512, kStream);
  const Block there = allocator.allocate(1024, {kCPU, 1});
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.inactive_split.all.current, 2);
  EXPECT_EQ(stats.inactive_split_bytes.all.current, static_cast<int64_t>(4 * kMiB - 512 - 1024));
  allocator.free(here);
  allocator.free(there);
}

TEST(AllocatorStatistics, PeaksOverStreamsMissLittle) {
  FakeMemory memory(256 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  std::vector<Block> blocks;
  for (int32_t stream = 0; stream < 4; ++stream) {
    for (int i = 0; i < 40; ++i) blocks.push_back(allocator.allocate(10'000, {kCPU, stream}));
  }
  const auto peak = static_cast<int64_t>(blocks.size() * blocks[0].bytes);
  for (const Block& block : blocks) allocator.free(block);
  EXPECT_LE(allocator.stats().peak_allocated, peak);
  EXPECT_GE(allocator.stats().peak_allocated, peak - 4 * 64 * 1024);
  EXPECT_EQ(allocator.stats().allocated, 0);
}

TEST(AllocatorStatistics, PeaksOfSegmentsStartAgainFromWhatIsHeld) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory, plain_segments());
  const Block small = allocator.allocate(512, kStream);
  allocator.free(allocator.allocate(30 * kMiB, kStream));
  allocator.empty_cache();
  EXPECT_EQ(allocator.memory_stats().segment.all.peak, 2);
  allocator.reset_peak_memory_stats();
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.segment.all.peak, 1);
  EXPECT_EQ(stats.segment.small_pool.peak, 1);
  EXPECT_EQ(stats.segment.large_pool.peak, 0);
  EXPECT_EQ(stats.reserved_bytes.all.peak, static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(stats.reserved_bytes.large_pool.peak, 0);
  allocator.free(small);
}

TEST(AllocatorHistory, RecordsStacksOnlyWhereTheyAreAskedFor) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  for (const bool stacks : {false, true}) {
    allocator.record_memory_history(5, stacks);
    allocator.free(allocator.allocate(3 * kMiB, kStream));
    const MemorySnapshot snapshot = allocator.snapshot();
    ASSERT_FALSE(snapshot.trace.empty());
    const auto has_stack = [](const TraceEntry& entry) { return !entry.context.stack.empty(); };
    EXPECT_EQ(std::ranges::any_of(snapshot.trace, has_stack), stacks);
  }
  allocator.record_memory_history(0);
}

TEST(AllocatorHistory, KeepsTheLastThingsThatHappened) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  allocator.record_memory_history(5, /*stacks=*/false);
  const std::string module = "h.0.mlp";
  const ModuleScope scope(module);
  const Block block = allocator.allocate(3 * kMiB, kStream);
  allocator.note("half way");
  allocator.free(block);
  allocator.empty_cache();
  using Action = TraceEntry::Action;
  std::vector<Action> actions;
  for (const TraceEntry& entry : allocator.snapshot().trace) actions.push_back(entry.action);
  EXPECT_EQ(actions,
            (std::vector{Action::kUserDefined, Action::kFreeRequested, Action::kFreeCompleted,
                         Action::kSegmentUnmap, Action::kSnapshot}));
  EXPECT_EQ(allocator.snapshot().trace[0].context.module, "h.0.mlp");
  allocator.record_memory_history(0);
  allocator.free(allocator.allocate(1, kStream));
  EXPECT_TRUE(allocator.snapshot().trace.empty());
}

TEST(AllocatorHistory, NamesTheBlocksAtThePeak) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block before = allocator.allocate(kMiB, kStream);
  allocator.record_memory_history(100);
  const Block a = allocator.allocate(4 * kMiB, kStream);
  const Block b = allocator.allocate(5 * kMiB, kStream);
  allocator.free(a);
  const Block c = allocator.allocate(3 * kMiB, kStream);
  std::vector<size_t> sizes;
  for (const BlockInfo& block : allocator.blocks_at_peak()) sizes.push_back(block.size);
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (std::vector{4 * kMiB, 5 * kMiB}));
  for (const Block& block : {before, b, c}) allocator.free(block);
}

TEST(AllocatorHistory, NamesTheBlocksAtThePeakInAllSegments) {
  FakeMemory memory(128 * kMiB);
  CachingAllocator allocator(kCPU, memory, plain_segments());
  allocator.record_memory_history(100);
  std::vector<Block> blocks;
  for (size_t i = 0; i < 3; ++i) blocks.push_back(allocator.allocate((21 + i) * kMiB, kStream));
  EXPECT_EQ(allocator.blocks_at_peak().size(), blocks.size());
  for (const Block& block : blocks) allocator.free(block);
  EXPECT_EQ(allocator.blocks_at_peak().size(), blocks.size());
}

TEST(AllocatorFork, TheChildMayAllocateWhileAThreadOfTheParentDid) {
  if (!kForksAmongBusyThreads) GTEST_SKIP() << "the allocator may stay locked in a child";
  FakeMemory memory(128 * kMiB);
  Allocator& shared = allocator(kCPU);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) shared.free(shared.allocate(1000, kStream));
  });
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(status_of_child([&] {
                shared.free(shared.allocate(1000, kStream));
                shared.free(shared.allocate(3 * kMiB, kStream));
                return true;
              }),
              0);
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace lockstep
