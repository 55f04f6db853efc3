// What a CachingAllocator waits for, and which events, counters and pools streams leave behind.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/waits.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_runtime.h"

namespace lockstep {
namespace {

const Stream kFirstStream = FakeRuntime::stream(0);
const Stream kSideStream = FakeRuntime::stream(1);

AllocatorOptions polling_options() {
  AllocatorOptions options;
  options.stream_reuse = StreamReuse::kPoll;
  return options;
}

struct AllocatorWaits : ::testing::Test {
  FakeRuntime runtime{64 * kMiB};
  CachingAllocator allocator{FakeRuntime::kDevice, runtime.memory()};
};

TEST_F(AllocatorWaits, SmallBlocksThatAnAllocatorPollsForAreTakenBeforeWaitingOnes) {
  CachingAllocator polls(FakeRuntime::kDevice, runtime.memory(), polling_options());
  const Block used = polls.allocate(512, kFirstStream), next = polls.allocate(512, kFirstStream);
  runtime.launch(kSideStream, [] {});
  polls.record_stream(used, kSideStream);
  polls.free(used);
  runtime.run(kSideStream);
  polls.free(next);
  EXPECT_EQ(polls.allocate(512, kFirstStream).data, used.data) << "it was freed last";
}

TEST_F(AllocatorWaits, PollingSkipsBlocksThatAreStillInUse) {
  allocator.set_options(polling_options());
  const Stream third = FakeRuntime::stream(2);
  const Block busy = allocator.allocate(2 * kMiB, kFirstStream),
              done = allocator.allocate(2 * kMiB, kFirstStream),
              last = allocator.allocate(2 * kMiB, kFirstStream);
  for (const auto& [block, stream] :
       {std::pair{busy, kSideStream}, {done, third}, {last, kSideStream}}) {
    runtime.launch(stream, [] {});
    allocator.record_stream(block, stream);
    allocator.free(block);
  }
  runtime.run(third);
  DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.active.all, (Stat{3, 3, 3, 0})) << "freed blocks are active while they are used";
  EXPECT_EQ(stats.allocation.all, (Stat{0, 3, 3, 3}));
  constexpr auto kBytes = static_cast<int64_t>(6 * kMiB);
  EXPECT_EQ(stats.active_bytes.large_pool, (Stat{kBytes, kBytes, kBytes, 0}));
  EXPECT_EQ(stats.allocated_bytes.large_pool, (Stat{0, kBytes, kBytes, kBytes}));
  EXPECT_EQ(stats.active_bytes.small_pool, Stat{});
  EXPECT_EQ(allocator.allocate(2 * kMiB, kFirstStream).data, done.data);
  EXPECT_EQ(allocator.memory_stats().active.all.current, 3) << "two in use, and the new one";
  EXPECT_EQ(allocator.memory_stats().active_bytes.large_pool.current,
            static_cast<int64_t>(6 * kMiB));
  const size_t made = runtime.events_made();
  runtime.run(kSideStream);
  const Block again = allocator.allocate(2 * kMiB, kFirstStream);
  EXPECT_EQ(allocator.memory_stats().active.all.current, 2);
  runtime.launch(kSideStream, [] {});
  allocator.record_stream(again, kSideStream);
  allocator.free(again);
  EXPECT_EQ(runtime.events_made(), made) << "events of blocks that were polled serve again";
}

TEST_F(AllocatorWaits, AStreamThatIsRecordedTwiceIsWaitedForOnce) {
  const Block block = allocator.allocate(kMiB, kFirstStream);
  runtime.launch(kSideStream, [] {});
  for (int i = 0; i < 2; ++i) allocator.record_stream(block, kSideStream);
  allocator.record_stream(block, FakeRuntime::stream(2));
  allocator.free(block);
  allocator.allocate(2 * kMiB, kFirstStream);
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 2) << "one for each of two streams";
  allocator.reset_accumulated_memory_stats();
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 0);
}

TEST_F(AllocatorWaits, UsesOfABlockEndWithItsLoan) {
  const Block block = allocator.allocate(kMiB, kFirstStream);
  runtime.launch(kSideStream, [] {});
  allocator.record_stream(block, kSideStream);
  allocator.free(block);
  const Block other = allocator.allocate(2 * kMiB, kFirstStream);  // the block, and more
  EXPECT_EQ(other.data, block.data);
  allocator.free(other);
  EXPECT_EQ(allocator.memory_stats().active.all.current, 0);
  allocator.record_stream(other, kSideStream);  // a stale handle
  EXPECT_EQ(allocator.memory_stats().active.all.current, 0);
}

TEST_F(AllocatorWaits, MarksOfStreamsOfOtherDevicesAreNotKept) {
  const Stream on_cpu{kCPU, 1};
  const Block block = allocator.allocate(kMiB, kFirstStream);
  allocator.record_use(block, on_cpu);
  allocator.record_stream(block, on_cpu);
  allocator.free(block);
  EXPECT_EQ(runtime.events_made(), 0u) << "the cpu's work is done when its call returns";
  const Block next = allocator.allocate(2 * kMiB, kFirstStream);
  EXPECT_EQ(next.data, block.data);
  allocator.free(next);
  allocator.empty_cache();
  const size_t made = runtime.events_made();
  allocator.free(allocator.allocate(4 * kMiB, kFirstStream));
  allocator.empty_cache();
  EXPECT_EQ(runtime.events_made(), made) << "the mark of a wait serves again";
}

TEST_F(AllocatorWaits, EachWaitIsCounted) {
  const int64_t waits = hidden_waits();
  for (int i = 1; i < 3; ++i) {
    allocator.free(allocator.allocate(4 * kMiB, kFirstStream));
    runtime.launch(kFirstStream, [] {});
    allocator.empty_cache();
    EXPECT_EQ(allocator.memory_stats().num_sync_all_streams, i);
    EXPECT_EQ(hidden_waits(), waits + i);
    EXPECT_EQ(runtime.queued(kFirstStream), 0u);
  }
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 0);
}

TEST_F(AllocatorWaits, EmptyingTheCacheReturnsWhatOtherStreamsUsed) {
  const Block block = allocator.allocate(4 * kMiB, kFirstStream);
  runtime.launch(kSideStream, [] {});
  allocator.record_stream(block, kSideStream);
  allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(runtime.memory().taken(), 0u);
  EXPECT_EQ(runtime.queued(kSideStream), 0u) << "after their work";
  EXPECT_EQ(allocator.memory_stats().active.all.current, 0);
}

TEST_F(AllocatorWaits, AReleasedPoolWhoseStreamIsBusyGoesBackWithTheNextRequest) {
  const PoolId pool = allocator.create_pool();
  const auto from_pool = [&](const Stream& stream) {
    const PoolGuard guard(allocator, pool);
    return allocator.allocate(4 * kMiB, stream);
  };
  const Block block = from_pool(kFirstStream), other = from_pool(kSideStream);
  EXPECT_EQ(allocator.live_blocks(pool), 2);
  runtime.launch(kFirstStream, [] {});
  allocator.release_pool(pool);
  allocator.free(other);
  EXPECT_EQ(runtime.memory().taken(), 8 * kMiB) << "another stream of the pool has a block";
  allocator.free(block);
  EXPECT_EQ(runtime.queued(kFirstStream), 1u) << "a free does not wait";
  EXPECT_EQ(runtime.memory().taken(), 8 * kMiB);
  allocator.free(allocator.allocate(2 * kMiB, FakeRuntime::stream(2)));
  EXPECT_EQ(runtime.queued(kFirstStream), 0u);
  EXPECT_EQ(runtime.memory().taken(), 2 * kMiB);
  EXPECT_EQ(runtime.memory().ranges(), 1u);
  EXPECT_EQ(runtime.memory().wrong_calls, 0) << runtime.memory().wrong_call;
}

TEST_F(AllocatorWaits, AReleasedPoolWithABlockThatIsStillUsedStaysUntilItsUsersAreDone) {
  const PoolId pool = allocator.create_pool();
  Block block;
  {
    const PoolGuard guard(allocator, pool);
    block = allocator.allocate(4 * kMiB, kFirstStream);
  }
  runtime.launch(kSideStream, [] {});
  allocator.record_stream(block, kSideStream);
  allocator.release_pool(pool);
  allocator.free(block);
  EXPECT_EQ(runtime.memory().taken(), 4 * kMiB) << "a free does not wait";
  allocator.empty_cache();
  EXPECT_EQ(runtime.memory().taken(), 0u);
  EXPECT_EQ(runtime.queued(kSideStream), 0u);
}

TEST_F(AllocatorWaits, ANumberThatIsGivenAgainGetsMemoryOfItsOwn) {
  const Block block = allocator.allocate(2 * kMiB, kSideStream);
  allocator.free(block);
  allocator.stream_destroyed(kSideStream);
  const Stream next = FakeRuntime::stream(2);
  const Block taken_over = allocator.allocate(kMiB, next);
  EXPECT_EQ(taken_over.data, block.data);
  // The runtime gives the number of the stream that is gone to another one.
  EXPECT_NE(allocator.allocate(kMiB, kSideStream).data, static_cast<std::byte*>(block.data) + kMiB);
  EXPECT_EQ(allocator.allocate(kMiB, next).data, static_cast<std::byte*>(block.data) + kMiB);
}

TEST_F(AllocatorWaits, AStreamThatWasMovedFromIsRefused) {
  expect_error<DeviceError>([&] { allocator.allocate(kMiB, FakeRuntime::stream(-1)); },
                            "[allocator] ", "is no stream: it was moved from.");
}

TEST_F(AllocatorWaits, AllStatisticsStartAgainAtAReset) {
  // Moves granules, waits, retries and fails, so that each counter has counted.
  std::vector<Block> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kFirstStream));
  for (size_t i = 0; i < 32; i += 2) allocator.free(blocks[i]);
  runtime.launch(kFirstStream, [] {});
  const Block large = allocator.allocate(8 * kMiB, kFirstStream);
  runtime.launch(kSideStream, [] {});
  allocator.record_stream(large, kSideStream);
  allocator.free(large);
  EXPECT_THROW(allocator.allocate(60 * kMiB, kFirstStream), OutOfMemoryError);
  for (size_t i = 1; i < 32; i += 2) allocator.free(blocks[i]);
  const Block other = allocator.allocate(40 * kMiB, kSideStream);
  allocator.free(allocator.allocate(512, kSideStream));
  const auto totals = [&] {
    std::map<std::string, int64_t> totals;
    for (const auto& [key, value] : flatten(allocator.memory_stats())) {
      const bool is_total = key.ends_with(".allocated") || key.ends_with(".freed");
      if ((is_total || key.starts_with("num_")) && !key.starts_with("inactive_split")) {
        totals[key] = value;
      }
    }
    return totals;
  };
  for (const auto& [key, value] : totals()) {
    // Neither small segments nor the returns of their memory exist in a range.
    const bool never = key.starts_with("segment.small") || key.starts_with("reserved_bytes.small");
    EXPECT_EQ(value > 0, !never) << key;
  }
  allocator.reset_accumulated_memory_stats();
  for (const auto& [key, value] : totals()) EXPECT_EQ(value, 0) << key;
  EXPECT_EQ(allocator.memory_stats().allocated_bytes.all.current, static_cast<int64_t>(40 * kMiB));
  allocator.free(other);
  EXPECT_EQ(totals().at("allocated_bytes.all.freed"), static_cast<int64_t>(40 * kMiB));
}

}  // namespace
}  // namespace lockstep
