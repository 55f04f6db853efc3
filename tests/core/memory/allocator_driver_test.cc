// Which calls a CachingAllocator makes to the driver, what it counts of them, and what it gives
// back.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

using Action = TraceEntry::Action;

constexpr auto kMiBs = static_cast<int64_t>(kMiB);

TEST(AllocatorDriver, AnAllocatorThatGoesLeavesNeitherMemoryNorAddresses) {
  FakeMemory memory(64 * kMiB);
  {
    CachingAllocator allocator(kCPU, memory);
    std::vector<Block> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(4 * kMiB, kStream));
    allocator.free(blocks[1]);
    allocator.empty_cache();  // leaves a hole without memory
    allocator.set_options(plain_segments());
    allocator.allocate(8 * kMiB, kStream);
    EXPECT_EQ(memory.ranges(), 1u);
  }
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(memory.ranges(), 0u);
  EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call;
}

TEST(AllocatorDriver, ARangeHasTwiceTheMemorysAddressesAndHalfAsManyWhereTheyAreRefused) {
  FakeMemory memory(64 * kMiB);
  memory.failing_reservations = 2;
  CachingAllocator allocator(kCPU, memory);
  allocator.allocate(4 * kMiB, kStream);
  EXPECT_EQ(memory.reserved_sizes, (std::vector<size_t>{130 * kMiB, 66 * kMiB, 34 * kMiB}));
  // Three reservations, granules that were made and mapped.
  EXPECT_EQ(allocator.stats().system_calls, 5);
  allocator.allocate(kMiB, kStream);
  EXPECT_EQ(memory.reservations, 3);
}

TEST(AllocatorDriver, WithoutAddressesThereArePlainSegments) {
  FakeMemory memory(64 * kMiB);
  memory.failing_reservations = -1;
  CachingAllocator allocator(kCPU, memory);
  allocator.allocate(kMiB, kStream);
  EXPECT_EQ(memory.reserved_sizes.front(), 130 * kMiB);
  EXPECT_EQ(memory.reserved_sizes.back(), 2 * kMiB) << "the least range";
  EXPECT_EQ(memory.reserved_sizes.size(), 8u);
  EXPECT_EQ(memory.allocations, 1);
  EXPECT_EQ(memory.maps, 0);
  memory.reserved_sizes.clear();
  allocator.allocate(12 * kMiB, kStream);
  EXPECT_EQ(memory.reserved_sizes,
            (std::vector<size_t>{130 * kMiB, 66 * kMiB, 34 * kMiB, 18 * kMiB}))
      << "smaller ones do not hold the request";
}

TEST(AllocatorDriver, RangesEndAtTwoTebibytes) {
  FakeMemory memory(size_t{3} << 40);
  memory.failing_allocations = -1;
  memory.failing_reservations = -1;
  CachingAllocator allocator(kCPU, memory);
  EXPECT_THROW(allocator.allocate(4 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(memory.reserved_sizes.front(), (size_t{2} << 40) + 2 * kMiB);
  memory.reserved_sizes.clear();
  EXPECT_THROW(allocator.allocate((size_t{1} << 40) + 512, kStream), OutOfMemoryError);
  EXPECT_TRUE(memory.reserved_sizes.empty()) << "more than half a range is served without one";
}

TEST(AllocatorDriver, EachCallIsCounted) {
  FakeMemory memory(32 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const auto calls = [&] {
    const DeviceMemoryStats stats = allocator.memory_stats();
    return std::pair(stats.num_device_alloc, stats.num_device_free);
  };
  using Calls = std::pair<int64_t, int64_t>;
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  EXPECT_EQ(calls(), (Calls{32, 0})) << "a granule is made, and mapped";
  for (size_t i = 0; i < 16; i += 2) allocator.free(blocks[i]);
  EXPECT_EQ(allocator.memory_stats().segment.all.current, 1);
  const Block large = allocator.allocate(16 * kMiB, kStream);
  EXPECT_EQ(calls(), (Calls{33, 8})) << "one run is mapped, and eight granules are unmapped before";
  EXPECT_EQ(allocator.memory_stats().segment.large_pool.current, 8) << "runs with memory";
  allocator.free(large);
  allocator.empty_cache();
  EXPECT_EQ(calls(), (Calls{33, 10})) << "unmapped at once, and destroyed";
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.reserved_bytes.large_pool,
            (Stat{16 * kMiBs, 32 * kMiBs, 32 * kMiBs, 16 * kMiBs}));
  EXPECT_EQ(stats.segment.large_pool.current, 8);
  // The reservation is one more call.
  EXPECT_EQ(allocator.stats().system_calls, 44);
}

TEST(AllocatorDriver, EachCallForPlainSegmentsIsCounted) {
  FakeMemory memory(128 * kMiB, /*has_granules=*/false);
  CachingAllocator allocator(kCPU, memory);
  allocator.free(allocator.allocate(512, kStream));
  allocator.free(allocator.allocate(30 * kMiB, kStream));
  DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_EQ(stats.segment.small_pool, (Stat{1, 1, 1, 0}));
  EXPECT_EQ(stats.segment.large_pool, (Stat{1, 1, 1, 0}));
  allocator.empty_cache();
  stats = allocator.memory_stats();
  EXPECT_EQ(stats.segment.small_pool, (Stat{0, 1, 1, 1}));
  EXPECT_EQ(stats.segment.all, (Stat{0, 2, 2, 2}));
  EXPECT_EQ(stats.reserved_bytes.small_pool, (Stat{0, 2 * kMiBs, 2 * kMiBs, 2 * kMiBs}));
  EXPECT_EQ(stats.reserved_bytes.large_pool, (Stat{0, 30 * kMiBs, 30 * kMiBs, 30 * kMiBs}));
  EXPECT_EQ(stats.num_device_alloc, 2);
  EXPECT_EQ(stats.num_device_free, 2);
  EXPECT_EQ(allocator.stats().system_calls, 4);
  allocator.allocate(128 * kMiB, kStream);  // the budget has it back
}

TEST(AllocatorDriver, ARangeGrowsOnAfterAPlainSegmentWentBack) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block first = allocator.allocate(4 * kMiB, kStream);
  allocator.set_options(plain_segments());
  allocator.free(allocator.allocate(12 * kMiB, kStream));
  allocator.empty_cache();
  allocator.set_options({});
  const Block next = allocator.allocate(4 * kMiB, kStream);
  EXPECT_EQ(next.data, static_cast<std::byte*>(first.data) + 4 * kMiB);
  EXPECT_EQ(memory.allocations, 1) << "the plain segment's";
}

TEST(AllocatorDriver, MemoryOnItsWayBackIsNeitherAllocatedNorGivenBackAgain) {
  for (const bool has_granules : {false, true}) {
    FakeMemory memory(64 * kMiB, has_granules);
    CachingAllocator allocator(kCPU, memory);
    const Block block = allocator.allocate(12 * kMiB, kStream);
    allocator.free(block);
    Block other;
    memory.meanwhile = [&] {
      std::thread([&] {
        allocator.empty_cache();
        other = allocator.allocate(12 * kMiB, kStream);
      }).join();
    };
    allocator.empty_cache();
    EXPECT_NE(other.data, nullptr);
    EXPECT_NE(other.data, block.data);
    EXPECT_EQ(memory.taken(), 12 * kMiB);
    EXPECT_EQ(allocator.stats().reserved, 12 * kMiBs);
    EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call;
  }
}

TEST(AllocatorDriver, RefusalsLeaveTheBudgetAsItWas) {
  FakeMemory memory(32 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  memory.failing_creations = 1;
  allocator.free(allocator.allocate(8 * kMiB, kStream));
  allocator.empty_cache();
  memory.failing_maps = 1;
  allocator.free(allocator.allocate(8 * kMiB, kStream));
  allocator.empty_cache();
  allocator.free(allocator.allocate(32 * kMiB, kStream));
  allocator.empty_cache();
  allocator.set_options(plain_segments());
  memory.failing_allocations = 1;
  allocator.free(allocator.allocate(12 * kMiB, kStream));
  EXPECT_EQ(memory.allocations, 2);
  allocator.empty_cache();
  allocator.allocate(32 * kMiB, kStream);
  EXPECT_EQ(memory.taken(), 32 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, 32 * kMiBs);
}

TEST(AllocatorDriver, WhereASegmentWithSpareRoomDoesNotFitOneWithoutIsTaken) {
  FakeMemory memory(12 * kMiB, /*has_granules=*/false);
  CachingAllocator allocator(kCPU, memory);
  const Block block = allocator.allocate(3 * kMiB, kStream);
  EXPECT_EQ(memory.taken(), 4 * kMiB);
  EXPECT_EQ(memory.allocations, 1) << "what the budget forbids is not asked for";
  EXPECT_EQ(block.bytes, 4 * kMiB) << "a rest of a MiB is not split off";
}

TEST(AllocatorDriver, TheWholeMemoryIsTheBudgetHoweverLargeItIs) {
  BookMemory memory((size_t{1} << 60) + 1);
  CachingAllocator allocator(kBookDevice, memory);
  EXPECT_EQ(allocator.budget(), (size_t{1} << 60) + 1);
}

struct HistoryEvent {
  Action action;
  uintptr_t address;
  size_t size;
  int32_t stream;
  friend bool operator==(const HistoryEvent&, const HistoryEvent&) = default;
};
void PrintTo(const HistoryEvent& entry, std::ostream* out) {
  *out << name(entry.action) << " " << entry.address << " " << entry.size << " " << entry.stream;
}

std::vector<HistoryEvent> history_of(const CachingAllocator& allocator) {
  std::vector<HistoryEvent> events;
  for (const TraceEntry& entry : allocator.snapshot().trace) {
    events.push_back({entry.action, entry.address, entry.size, entry.stream});
  }
  return events;
}

TEST(AllocatorDriver, TheHistoryHasEachChangeOfASegment) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Stream stream{kCPU, 3};
  allocator.record_memory_history(100, /*stacks=*/false);
  const Block block = allocator.allocate(3 * kMiB, stream);
  const auto at = reinterpret_cast<uintptr_t>(block.data);
  allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(history_of(allocator),
            (std::vector<HistoryEvent>{{Action::kSegmentMap, at, 4 * kMiB, 3},
                                       {Action::kAlloc, at, 3 * kMiB, 3},
                                       {Action::kFreeRequested, at, 3 * kMiB, 3},
                                       {Action::kFreeCompleted, at, 3 * kMiB, 3},
                                       {Action::kSegmentUnmap, at, 4 * kMiB, 3},
                                       {Action::kSnapshot, 0, 0, 0}}));

  allocator.record_memory_history(100, /*stacks=*/false);
  allocator.set_options(plain_segments());
  const Block plain = allocator.allocate(12 * kMiB, stream);
  const auto place = reinterpret_cast<uintptr_t>(plain.data);
  allocator.free(plain);
  allocator.empty_cache();
  EXPECT_EQ(history_of(allocator),
            (std::vector<HistoryEvent>{{Action::kSegmentAlloc, place, 12 * kMiB, 3},
                                       {Action::kAlloc, place, 12 * kMiB, 3},
                                       {Action::kFreeRequested, place, 12 * kMiB, 3},
                                       {Action::kFreeCompleted, place, 12 * kMiB, 3},
                                       {Action::kSegmentFree, place, 12 * kMiB, 3},
                                       {Action::kSnapshot, 0, 0, 0}}));
}

TEST(AllocatorDriver, TheHistoryHasTheGranulesThatMove) {
  FakeMemory memory(16 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  const auto at = reinterpret_cast<uintptr_t>(blocks[0].data);
  for (const size_t i : {1u, 4u}) allocator.free(blocks[i]);
  allocator.record_memory_history(100, /*stacks=*/false);
  const Block large = allocator.allocate(4 * kMiB, kStream);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data), at + 16 * kMiB);
  EXPECT_EQ(history_of(allocator),
            (std::vector<HistoryEvent>{{Action::kSegmentUnmap, at + 8 * kMiB, 2 * kMiB, 0},
                                       {Action::kSegmentUnmap, at + 2 * kMiB, 2 * kMiB, 0},
                                       {Action::kSegmentMap, at + 16 * kMiB, 4 * kMiB, 0},
                                       {Action::kAlloc, at + 16 * kMiB, 4 * kMiB, 0},
                                       {Action::kSnapshot, 0, 0, 0}}));
  // The block that is refused is in the history, too, with what the device has left.
  EXPECT_THROW(allocator.allocate(4 * kMiB, kStream), OutOfMemoryError);
  const std::vector<HistoryEvent> after = history_of(allocator);
  EXPECT_EQ(after.at(after.size() - 2), (HistoryEvent{Action::kOom, 0, 4 * kMiB, 0}));
}

}  // namespace
}  // namespace lockstep
