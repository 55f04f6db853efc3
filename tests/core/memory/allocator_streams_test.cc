// Use of a CachingAllocator's blocks on several streams.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/device/waits.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_runtime.h"

namespace lockstep {
namespace {

const Stream kMain = FakeRuntime::stream(0);
const Stream kSide = FakeRuntime::stream(1);

AllocatorOptions polling() {
  AllocatorOptions options;
  options.stream_reuse = StreamReuse::kPoll;
  return options;
}

struct AllocatorStreams : ::testing::Test {
  FakeRuntime runtime{64 * kMiB};
  CachingAllocator allocator{FakeRuntime::kDevice, runtime.memory()};
};

TEST_F(AllocatorStreams, ABlockUsedOnASideStreamServesItsOwnAfterThatWork) {
  const Block block = allocator.allocate(kMiB, kMain);
  runtime.launch(kSide, [] {});
  allocator.record_stream(block, kSide);
  allocator.free(block);
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_EQ(allocator.memory_stats().active_bytes.all.current, static_cast<int64_t>(kMiB));

  const Block big = allocator.allocate(2 * kMiB, kMain);  // does not fit beside the first block
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 1);
  EXPECT_EQ(big.data, block.data);
  bool ran = false;
  runtime.launch(kMain, [&] { ran = true; });
  EXPECT_FALSE(runtime.run_one(kMain)) << "the stream waits for the side stream";
  runtime.run(kMain);
  EXPECT_TRUE(ran);
  EXPECT_EQ(runtime.queued(kSide), 0u);
}

TEST_F(AllocatorStreams, EachPoolOfSizesHasPeaksOfItsOwn) {
  for (const auto& [bytes, count] : {std::pair(size_t{512}, 5), std::pair(3 * kMiB, 3)}) {
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(allocator.allocate(bytes, kMain));
    runtime.launch(kSide, [] {});
    for (const Block& block : blocks) {
      allocator.record_stream(block, kSide);
      allocator.free(block);  // active until the side stream is through
    }
  }
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.allocation.small_pool.peak, 5);
  EXPECT_EQ(stats.allocation.large_pool.peak, 3);
  EXPECT_EQ(stats.allocation.all.peak, 5);
  EXPECT_EQ(stats.active.small_pool.peak, 5);
  EXPECT_EQ(stats.active.large_pool.peak, 3);
  EXPECT_EQ(stats.allocated_bytes.small_pool.peak, 5 * 512);
  EXPECT_EQ(stats.active_bytes.large_pool.peak, static_cast<int64_t>(3 * 3 * kMiB));
}

TEST_F(AllocatorStreams, EventsServeAgain) {
  const auto use = [&] {
    const Block block = allocator.allocate(kMiB, kMain);
    runtime.launch(kSide, [] {});
    allocator.record_stream(block, kSide);
    allocator.free(block);
    runtime.run(kSide);
    allocator.free(allocator.allocate(2 * kMiB, kMain));
  };
  use();
  use();
  const size_t made = runtime.events_made();
  for (int i = 0; i < 8; ++i) use();
  EXPECT_EQ(runtime.events_made(), made);
}

TEST_F(AllocatorStreams, WaitingReuseBlocksNobodyAndTakesTheOldestBlock) {
  const int64_t waits = hidden_waits();
  std::vector<Block> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kMain));
  runtime.launch(kSide, [] {});
  for (const Block& block : blocks) {
    allocator.record_stream(block, kSide);
    allocator.free(block);
  }
  EXPECT_EQ(allocator.allocate(2 * kMiB, kMain).data, blocks[0].data);
  EXPECT_EQ(allocator.allocate(2 * kMiB, kMain).data, blocks[1].data);
  EXPECT_EQ(hidden_waits(), waits);
  EXPECT_GT(runtime.queued(kSide), 0u) << "the side stream has not run";
}

TEST_F(AllocatorStreams, PollingReuseTakesABlockOnceItsUsersAreDone) {
  allocator.set_options(polling());
  const Block block = allocator.allocate(kMiB, kMain);
  runtime.launch(kSide, [] {});
  allocator.record_stream(block, kSide);
  allocator.free(block);
  const Block other = allocator.allocate(kMiB, kMain);
  EXPECT_NE(other.data, block.data);
  runtime.run(kSide);
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 0);
}

TEST_F(AllocatorStreams, RecordStreamOfItsOwnStreamIsIgnored) {
  const Block block = allocator.allocate(kMiB, kMain);
  allocator.record_stream(block, kMain);
  allocator.record_use(block, kMain);
  allocator.free(block);
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 0);
}

TEST_F(AllocatorStreams, RecordUseWaitsForTheWorkQueuedUntilThen) {
  allocator.set_options(polling());
  const Block block = allocator.allocate(kMiB, kMain);
  runtime.launch(kSide, [] {});
  allocator.record_use(block, kSide);
  runtime.launch(kSide, [] {});  // queued after the use, so no reason to wait
  allocator.free(block);
  EXPECT_TRUE(runtime.run_one(kSide));
  EXPECT_NE(allocator.allocate(kMiB, kMain).data, block.data);
  EXPECT_TRUE(runtime.run_one(kSide));  // reaches the event of record_use
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
  EXPECT_EQ(runtime.queued(kSide), 1u);
}

TEST_F(AllocatorStreams, ASecondUseOnTheSameStreamIsWaitedForLikeTheFirst) {
  allocator.set_options(polling());
  const Block block = allocator.allocate(kMiB, kMain);
  runtime.launch(kSide, [] {});
  allocator.record_use(block, kSide);
  runtime.run(kSide);
  runtime.launch(kSide, [] {});
  allocator.record_use(block, kSide);
  allocator.free(block);
  EXPECT_NE(allocator.allocate(kMiB, kMain).data, block.data) << "the second use has not run";
  runtime.run(kSide);
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
}

TEST_F(AllocatorStreams, APoolIsRestoredThoughOtherStreamsStillUseItsFreedBlocks) {
  const PoolId pool = allocator.create_pool();
  const auto from_pool = [&](size_t bytes) {
    const PoolGuard guard(allocator, pool);
    return allocator.allocate(bytes, kMain);
  };
  const Block kept = from_pool(3 * kMiB);
  const auto state = allocator.checkpoint(pool);
  const Block later = from_pool(2 * kMiB);
  runtime.launch(kSide, [] {});
  for (const Block& block : {kept, later}) {
    allocator.record_stream(block, kSide);
    allocator.free(block);
  }
  const std::vector<Block> restored = allocator.restore(pool, *state);
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(restored[0].data, kept.data);
  EXPECT_EQ(allocator.live_blocks(pool), 1);
  EXPECT_EQ(allocator.memory_stats().num_stream_waits, 2) << "its stream waits for both uses";
  EXPECT_EQ(from_pool(2 * kMiB).data, later.data);
}

TEST_F(AllocatorStreams, ABlockThatOtherStreamsStillUseCannotBeFreedAgain) {
  const Block block = allocator.allocate(kMiB, kMain);
  runtime.launch(kSide, [] {});
  allocator.record_stream(block, kSide);
  allocator.free(block);
  allocator.free(block);
  EXPECT_EQ(allocator.wrong_frees(), 1);
  const MemorySnapshot snapshot = allocator.snapshot();
  EXPECT_EQ(snapshot.segments.at(0).blocks.at(0).state, BlockInfo::State::kActivePendingFree);
  EXPECT_EQ(snapshot.segments.at(0).allocated_size, 0u);
  EXPECT_EQ(snapshot.segments.at(0).active_size, kMiB);
}

TEST_F(AllocatorStreams, AnAllocatorThatGoesWaitsForTheWorkOnItsMemory) {
  bool ran = false;
  {
    CachingAllocator other(FakeRuntime::kDevice, runtime.memory());
    const Block block = other.allocate(kMiB, kMain);
    runtime.launch(kMain, [&ran, block] {
      std::memset(block.data, 1, block.bytes);
      ran = true;
    });
    other.free(block);
  }
  EXPECT_TRUE(ran);
  EXPECT_EQ(runtime.memory().taken(), 0u);
}

TEST_F(AllocatorStreams, EachStreamHasItsOwnMemory) {
  const Block block = allocator.allocate(kMiB, kMain);
  allocator.free(block);
  EXPECT_NE(allocator.allocate(kMiB, kSide).data, block.data);
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
}

TEST_F(AllocatorStreams, DelayedFreesAreCollectedWhenMemoryIsShort) {
  for (const bool polls : {false, true}) {
    if (polls) allocator.set_options(polling());
    const Block block = allocator.allocate(48 * kMiB, kMain);
    runtime.launch(kSide, [] {});
    allocator.record_stream(block, kSide);
    allocator.free(block);
    const int64_t waits = allocator.memory_stats().num_stream_waits;
    const Block again = allocator.allocate(40 * kMiB, kMain);
    EXPECT_EQ(again.data, block.data) << "there is room nowhere else";
    EXPECT_EQ(allocator.memory_stats().num_stream_waits, waits + 1);
    EXPECT_GT(runtime.queued(kSide), 0u) << "the cpu did not wait";
    allocator.free(again);
  }
  EXPECT_EQ(allocator.memory_stats().num_ooms, 0);
}

TEST_F(AllocatorStreams, MemoryOfAnotherStreamComesAfterItsWork) {
  const Block block = allocator.allocate(48 * kMiB, kSide);
  bool ran = false;
  runtime.launch(kSide, [&] {
    std::memset(block.data, 1, block.bytes);
    ran = true;
  });
  allocator.free(block);
  const int64_t waits = hidden_waits();
  const Block other = allocator.allocate(40 * kMiB, kMain);
  EXPECT_TRUE(ran) << "memory goes back after the work that uses it";
  EXPECT_EQ(hidden_waits(), waits + 1);
  EXPECT_EQ(allocator.memory_stats().num_alloc_retries, 1);
  EXPECT_EQ(allocator.memory_stats().num_sync_all_streams, 1);
  allocator.free(other);
}

TEST_F(AllocatorStreams, GranulesMoveAfterTheWorkThatUsesThem) {
  AllocatorOptions options;
  options.reserve_ratio = 1;
  allocator.set_options(options);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(4 * kMiB, kMain));
  bool ran = false;
  runtime.launch(kMain, [&] {
    for (int i = 0; i < 8; i += 2) std::memset(blocks[static_cast<size_t>(i)].data, 1, 4 * kMiB);
    ran = true;
  });
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  const int64_t before = allocator.stats().reserved;
  const Block large = allocator.allocate(16 * kMiB, kMain);
  EXPECT_TRUE(ran);
  EXPECT_LE(allocator.stats().reserved, before + static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(allocator.memory_stats().num_stitched, 1);
  std::memset(large.data, 2, large.bytes);
  EXPECT_EQ(runtime.memory().wrong_calls, 0) << runtime.memory().wrong_call;
}

TEST_F(AllocatorStreams, MemoryOfADestroyedStreamIsNotLost) {
  const Block block = allocator.allocate(40 * kMiB, kSide);
  const Block used = allocator.allocate(2 * kMiB, kMain);
  allocator.record_stream(used, kSide);
  runtime.forget(kSide);
  allocator.free(used);
  allocator.free(block);
  EXPECT_NO_THROW(allocator.free(allocator.allocate(60 * kMiB, kMain)));
}

TEST_F(AllocatorStreams, MemoryOfADestroyedStreamServesTheNextNewOne) {
  const Block kept = allocator.allocate(kMiB, kSide);
  allocator.free(allocator.allocate(2 * kMiB, kSide));
  const DeviceMemoryStats before = allocator.memory_stats();
  std::vector<const void*> addresses;
  Stream stream = kSide;
  for (int i = 0; i < 300; ++i) {
    runtime.destroy_stream(stream);
    allocator.stream_destroyed(stream);
    stream = runtime.create_stream(0, 0);
    const Block block = allocator.allocate(2 * kMiB, stream);
    addresses.push_back(block.data);
    allocator.free(block);
  }
  EXPECT_EQ(std::ranges::count(addresses, addresses[0]), 300);
  EXPECT_EQ(allocator.memory_stats().num_device_alloc, before.num_device_alloc);
  EXPECT_EQ(runtime.memory().reservations, 1);

  // A block that outlives its stream belongs to the stream that takes over: other streams' uses
  // must be recorded.
  allocator.record_stream(kept, kMain);
  runtime.launch(kMain, [] {});
  allocator.free(kept);
  EXPECT_EQ(allocator.memory_stats().active_bytes.all.current, static_cast<int64_t>(kMiB));
}

TEST_F(AllocatorStreams, AStreamThatAllocatedNothingMayBeDestroyed) {
  allocator.stream_destroyed(kSide);
  const Block block = allocator.allocate(kMiB, kMain);
  allocator.stream_destroyed(kSide);
  allocator.free(block);
  EXPECT_EQ(allocator.allocate(kMiB, kMain).data, block.data);
}

/// A live block, the stream it was allocated on, and the byte that fills it.
struct Live {
  Block block;
  Stream owner;
  unsigned char pattern;
};

/// Random kernels write each block on its own stream and read it on others, while streams run and
/// are replaced. No kernel may see bytes written for another block.
void check_random_program(const AllocatorOptions& options) {
  FakeRuntime runtime(256 * kMiB);
  CachingAllocator allocator(FakeRuntime::kDevice, runtime.memory(), options);
  std::vector<Stream> streams{FakeRuntime::stream(0), FakeRuntime::stream(1),
                              FakeRuntime::stream(2)};
  std::vector<Live> alive;
  int overwritten = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  const auto reads = [&](const Live& live) {
    return [&overwritten, live] {
      const auto* const data = static_cast<const unsigned char*>(live.block.data);
      for (size_t i = 0; i < live.block.bytes; i += 509) overwritten += data[i] != live.pattern;
    };
  };
  const auto is_there = [&](const Stream& stream) {
    return std::ranges::find(streams, stream) != streams.end();
  };
  unsigned char pattern = 0;
  for (const auto& [choice, number] : steps) {
    Stream& stream = streams[number % 3];
    const auto uses = [&](const Live& live, bool as_whole) {
      runtime.launch(stream, reads(live));
      as_whole ? allocator.record_stream(live.block, stream)
               : allocator.record_use(live.block, stream);
    };
    switch (choice % 8) {
      case 0:
      case 1:
      case 2: {
        const size_t bytes = number % 4 == 0 ? number * size_t{64} + 1 : number / 8 + 1u;
        const Live live{allocator.allocate(bytes, stream), stream, ++pattern};
        runtime.launch(stream,
                       [live] { std::memset(live.block.data, live.pattern, live.block.bytes); });
        alive.push_back(live);
        break;
      }
      case 3:
      case 4: {
        if (alive.empty()) break;
        const Live& live = alive[number % alive.size()];
        // The read must follow the kernel that wrote the block.
        if (is_there(live.owner)) stream.wait_stream(live.owner);
        uses(live, choice % 2 == 0);
        break;
      }
      case 5:
        runtime.run_one(stream);
        runtime.run_one(stream);
        break;
      case 6:
        if (number % 4 == 0) {
          runtime.destroy_stream(stream);
          allocator.stream_destroyed(stream);
          stream = runtime.create_stream(0, 0);
          break;
        }
        [[fallthrough]];
      default: {
        if (alive.empty()) break;
        const auto at = alive.begin() + static_cast<long>(number % alive.size());
        if (is_there(at->owner)) {
          runtime.launch(at->owner, reads(*at));
        } else {
          uses(*at, true);
        }
        allocator.free(at->block);
        alive.erase(at);
      }
    }
    if (alive.size() > 64) {
      for (const Live& live : alive) allocator.free(live.block);
      alive.clear();
    }
  }
  runtime.synchronize(0);
  RC_ASSERT(overwritten == 0);
  RC_ASSERT(runtime.memory().wrong_calls == 0);
  for (const Live& live : alive) allocator.free(live.block);
  allocator.empty_cache();
  RC_ASSERT(runtime.memory().taken() == 0u);
}

RC_GTEST_PROP(StreamPrograms, NoKernelFindsAnothersBytes, ()) { check_random_program({}); }

RC_GTEST_PROP(StreamPrograms, NoKernelFindsAnothersBytesWhenPolling, ()) {
  check_random_program(polling());
}

RC_GTEST_PROP(StreamPrograms, NoKernelFindsAnothersBytesInPlainSegments, ()) {
  check_random_program(plain_segments());
}

}  // namespace
}  // namespace lockstep
