// The steps that a CachingAllocator takes when memory is short, and its response to driver errors.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

constexpr Stream kOther{kCPU, 1};

struct AllocatorLadder : ::testing::Test {
  FakeMemory memory{32 * kMiB};
  CachingAllocator allocator{kCPU, memory};

  ~AllocatorLadder() override { EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call; }
};

TEST_F(AllocatorLadder, OneLargeBlockIsStitchedFromScatteredGranules) {
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  for (size_t i = 0; i < 16; i += 2) allocator.free(blocks[i]);
  for (size_t i = 1; i < 16; i += 2) std::memset(blocks[i].data, static_cast<int>(i), 2 * kMiB);

  const Block large = allocator.allocate(16 * kMiB, kStream);
  std::memset(large.data, 99, large.bytes);
  for (size_t i = 1; i < 16; i += 2) {
    EXPECT_EQ(static_cast<unsigned char*>(blocks[i].data)[kMiB], i);
  }
  EXPECT_EQ(allocator.memory_stats().num_stitched, 1);
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(32 * kMiB));
}

TEST_F(AllocatorLadder, WhenHalfOfTheMemoryHasMovedMoreOfItIsTaken) {
  FakeMemory large(256 * kMiB);
  AllocatorOptions options;
  options.reserve_ratio = 1;
  CachingAllocator moving(kCPU, large, options);
  std::vector<Block> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(moving.allocate(2 * kMiB, kStream));
  for (size_t i = 1; i < 32; i += 2) moving.free(blocks[i]);
  // Blocks at the end of the range, each a granule larger than all that is free there.
  size_t granules = 2;
  const auto stretch = [&] { moving.free(moving.allocate(granules++ * 2 * kMiB, kStream)); };
  stretch();
  EXPECT_EQ(large.taken(), 66 * kMiB) << "a granule more than were live at once";
  for (size_t moved = 0; large.taken() == 66 * kMiB && moved < 24; ++moved) {
    // Then there are enough holes, and never more live bytes than at first.
    if (moved >= 9) moving.free(blocks[2 * (moved - 9)]);
    stretch();
  }
  EXPECT_EQ(moving.memory_stats().num_stitched, 17) << "34 MiB are more than half of 66";
  EXPECT_EQ(large.taken(), 68 * kMiB);
}

TEST_F(AllocatorLadder, PlainSegmentsCannotStitch) {
  FakeMemory plain(32 * kMiB, /*has_granules=*/false);
  CachingAllocator other(kCPU, plain);
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(other.allocate(kMiB + 1, kStream));
  for (size_t i = 0; i < 16; i += 2) other.free(blocks[i]);
  expect_error<OutOfMemoryError>([&] { other.allocate(13 * kMiB, kStream); }, "in pieces");
}

TEST_F(AllocatorLadder, CachedMemoryOfOtherStreamsGoesBack) {
  allocator.free(allocator.allocate(30 * kMiB, kStream));
  const Block block = allocator.allocate(20 * kMiB, kOther);
  EXPECT_NE(block.data, nullptr);
  EXPECT_EQ(allocator.memory_stats().num_alloc_retries, 1);
  EXPECT_EQ(allocator.memory_stats().num_ooms, 0);
  EXPECT_EQ(memory.taken(), 30 * kMiB) << "20 MiB went back, and 20 came";
}

TEST_F(AllocatorLadder, OnlyAsMuchAsIsNeededGoesBack) {
  allocator.free(allocator.allocate(30 * kMiB, kStream));
  allocator.allocate(4 * kMiB, kOther);
  EXPECT_EQ(memory.taken(), 30 * kMiB) << "2 MiB were left: 4 went back, and 4 came";
  allocator.free(allocator.allocate(26 * kMiB, kStream));
  EXPECT_EQ(memory.taken(), 30 * kMiB) << "the rest is still cached";
}

TEST_F(AllocatorLadder, CachesOfOtherStreamsGoBackBeforeGranulesThatCanBeMoved) {
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  for (size_t i = 0; i < 8; i += 2) allocator.free(blocks[i]);
  allocator.free(allocator.allocate(16 * kMiB, kOther));
  ASSERT_EQ(memory.taken(), 32 * kMiB);
  allocator.allocate(16 * kMiB, kStream);
  EXPECT_EQ(memory.taken(), 24 * kMiB) << "8 MiB in blocks, and 16, of which 8 were moved";
  EXPECT_EQ(allocator.memory_stats().num_stitched, 1);
}

TEST_F(AllocatorLadder, LargeSegmentsGoBackFirst) {
  FakeMemory plain(90 * kMiB, /*has_granules=*/false);
  CachingAllocator native(kCPU, plain);
  const Block small = native.allocate(30 * kMiB, kStream);
  const Block large = native.allocate(50 * kMiB, kStream);
  native.free(small);
  native.free(large);
  native.allocate(40 * kMiB, kOther);
  EXPECT_EQ(plain.taken(), (30 + 40) * kMiB) << "the large one was enough";
  EXPECT_EQ(native.allocate(30 * kMiB, kStream).data, small.data);
}

TEST_F(AllocatorLadder, FreeMemoryCallbacksComeBeforeTheDriver) {
  const Block kept = allocator.allocate(20 * kMiB, kStream);
  int calls = 0;
  const int number = allocator.add_free_memory_callback([&] {
    if (++calls > 1) return false;
    allocator.free(kept);
    return true;
  });
  const int creations = memory.creations;
  EXPECT_EQ(allocator.allocate(20 * kMiB, kStream).data, kept.data);
  EXPECT_EQ(memory.creations, creations);
  EXPECT_EQ(calls, 1);
  allocator.remove_free_memory_callback(number);
  EXPECT_THROW(allocator.allocate(20 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(calls, 1);
}

TEST_F(AllocatorLadder, WhatACallbackFreesServesTheRequestThoughTheDriverHasMore) {
  const Block kept = allocator.allocate(8 * kMiB, kStream);
  allocator.add_free_memory_callback([&] {
    allocator.free(kept);
    return true;
  });
  EXPECT_EQ(allocator.allocate(8 * kMiB, kStream).data, kept.data);
  EXPECT_EQ(memory.taken(), 8 * kMiB);
}

TEST_F(AllocatorLadder, AFractionOfTheMemoryIsTheBudget) {
  AllocatorOptions options;
  options.per_process_memory_fraction = 0.5;
  allocator.set_options(options);
  EXPECT_EQ(allocator.budget(), 16 * kMiB);
  const Block fits = allocator.allocate(16 * kMiB, kStream);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(1, kStream); },
                                 "per_process_memory_fraction allows 16.0 MiB of 32.0 MiB");
  allocator.free(fits);
  for (const double wrong : {0.0, -1.0, 1.5}) {
    options.per_process_memory_fraction = wrong;
    expect_error<ConfigError>([&] { allocator.set_options(options); },
                              "per_process_memory_fraction", "at most 1");
  }
  EXPECT_EQ(allocator.budget(), 16 * kMiB) << "refused options change nothing";
}

TEST_F(AllocatorLadder, ABudgetBelowOneSegmentServesNobody) {
  FakeMemory tiny(kMiB);
  for (const AllocatorOptions& options : {AllocatorOptions{}, plain_segments()}) {
    CachingAllocator small(kCPU, tiny, options);
    expect_error<OutOfMemoryError>([&] { small.allocate(1, kStream); }, "Budget 1.0 MiB");
  }
}

TEST_F(AllocatorLadder, RetriesAfterHalfIsHeldAndSucceedsAfterAFree) {
  const Block half = allocator.allocate(16 * kMiB, kStream);
  EXPECT_THROW(allocator.allocate(17 * kMiB, kStream), OutOfMemoryError);
  allocator.free(half);
  EXPECT_NE(allocator.allocate(32 * kMiB, kStream).data, nullptr);
}

TEST_F(AllocatorLadder, AFailedMappingLeavesNothingBehind) {
  const Block first = allocator.allocate(4 * kMiB, kStream);
  std::memset(first.data, 7, first.bytes);
  memory.failing_maps = -1;
  EXPECT_THROW(allocator.allocate(8 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(memory.taken(), 4 * kMiB);
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(4 * kMiB));
  EXPECT_EQ(static_cast<unsigned char*>(first.data)[3 * kMiB], 7);
  memory.failing_maps = 0;
  const Block second = allocator.allocate(8 * kMiB, kStream);
  EXPECT_EQ(second.data, static_cast<std::byte*>(first.data) + 4 * kMiB);
}

TEST_F(AllocatorLadder, ASecondRunThatCannotBeMappedIsRolledBack) {
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(4 * kMiB, kStream));
  for (const int i : {0, 2}) allocator.free(blocks[static_cast<size_t>(i)]);
  allocator.empty_cache();
  const Block middle = allocator.allocate(2 * kMiB, kStream);  // leaves two runs in the holes
  allocator.free(blocks[1]);
  memory.good_maps = memory.failing_maps = 1;
  const int unmaps = memory.unmaps;
  const Block large = allocator.allocate(9 * kMiB, kStream);  // a later step succeeds
  EXPECT_EQ(memory.failing_maps, 0);
  EXPECT_GT(memory.unmaps, unmaps) << "the first run";
  EXPECT_EQ(memory.taken(), static_cast<size_t>(allocator.stats().reserved));
  std::memset(large.data, 3, large.bytes);
  for (const Block& block : {large, middle, blocks[3]}) allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(allocator.stats().reserved, 0);
}

TEST_F(AllocatorLadder, ABlockOfSeveralRunsGivesEachGranuleBackOnce) {
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(4 * kMiB, kStream));
  for (const int i : {0, 2}) allocator.free(blocks[static_cast<size_t>(i)]);
  allocator.empty_cache();
  const Block middle = allocator.allocate(2 * kMiB, kStream);  // leaves two runs in the holes
  allocator.free(blocks[1]);
  const Block large = allocator.allocate(9 * kMiB, kStream);  // over both runs and blocks[1]
  std::memset(large.data, 3, large.bytes);
  allocator.free(large);
  allocator.free(middle);
  allocator.free(blocks[3]);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(allocator.stats().reserved, 0);
}

TEST_F(AllocatorLadder, AFailedMappingOfMovedGranulesLosesNoBook) {
  std::vector<Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  for (size_t i = 0; i < 16; i += 2) allocator.free(blocks[i]);
  memory.failing_maps = -1;
  EXPECT_THROW(allocator.allocate(16 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(memory.taken()));
  memory.failing_maps = 0;
  const Block block = allocator.allocate(16 * kMiB, kStream);
  std::memset(block.data, 1, block.bytes);
  allocator.free(block);
  for (size_t i = 1; i < 16; i += 2) allocator.free(blocks[i]);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
}

TEST_F(AllocatorLadder, ADriverThatRefusesGranulesOnceIsAskedAgain) {
  memory.failing_creations = 1;
  const Block block = allocator.allocate(8 * kMiB, kStream);
  std::memset(block.data, 1, block.bytes);
  EXPECT_EQ(memory.creations, 2);
  EXPECT_EQ(memory.failing_creations, 0);
  EXPECT_EQ(memory.taken(), 8 * kMiB);
  EXPECT_EQ(memory.allocations, 0) << "a plain segment could not be stitched later";
}

TEST_F(AllocatorLadder, PlainSegmentsFollowTheSizeRules) {
  FakeMemory plain(256 * kMiB, /*has_granules=*/false);
  CachingAllocator native(kCPU, plain);
  native.allocate(512, kStream);
  EXPECT_EQ(plain.taken(), 2 * kMiB);
  native.allocate(kMiB, kStream);
  EXPECT_EQ(plain.taken(), 2 * kMiB) << "one segment serves many small blocks";
  native.allocate(kMiB + 1, kStream);
  EXPECT_EQ(plain.taken(), 22 * kMiB);
  native.allocate(9 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), 22 * kMiB);
  native.allocate(10 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), 32 * kMiB);
  native.allocate(11 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), 44 * kMiB) << "in whole 2 MiB";
}

TEST_F(AllocatorLadder, ARestOfOneMiBIsNotSplitOffALargeBlock) {
  FakeMemory plain(256 * kMiB, /*has_granules=*/false);
  CachingAllocator native(kCPU, plain);
  for (const char* segment : {"new", "cached"}) {
    const Block whole = native.allocate(19 * kMiB, kStream);
    EXPECT_EQ(whole.bytes, 20 * kMiB) << segment;
    native.free(whole);
  }
  const Block cut = native.allocate(19 * kMiB - 512, kStream);
  EXPECT_EQ(cut.bytes, 19 * kMiB - 512);
  EXPECT_EQ(plain.taken(), 20 * kMiB);
}

TEST_F(AllocatorLadder, BlocksOfTheMaximalSizeAreNotSplit) {
  FakeMemory plain(256 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.max_split_size = 40 * kMiB;
  CachingAllocator native(kCPU, plain, options);
  native.free(native.allocate(64 * kMiB, kStream));
  const Block small = native.allocate(2 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), 84 * kMiB) << "a small request leaves the large block alone";
  const Block large = native.allocate(50 * kMiB, kStream);
  EXPECT_EQ(large.bytes, 64 * kMiB);
  native.free(large);
  native.allocate(42 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), (84 + 42) * kMiB) << "too much would be wasted";
  // When memory is short, the large block is released as a whole.
  native.allocate(160 * kMiB, kStream);
  EXPECT_EQ(native.memory_stats().num_alloc_retries, 1);
  native.free(small);
}

/// Lets segments that are free now grow older: each request searches the free memory.
void let_time_pass(CachingAllocator& allocator) {
  for (int i = 0; i < 10; ++i) allocator.free(allocator.allocate(100'000, kStream));
}

TEST_F(AllocatorLadder, GarbageCollectionGivesOldSegmentsBack) {
  FakeMemory plain(100 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.garbage_collection_threshold = 0.5;
  CachingAllocator native(kCPU, plain, options);
  let_time_pass(native);  // takes the 2 MiB of small requests
  const Block old = native.allocate(30 * kMiB, kStream);
  const Block young = native.allocate(24 * kMiB, kStream);
  native.free(old);
  let_time_pass(native);
  native.free(young);
  ASSERT_EQ(plain.taken(), 56 * kMiB);
  native.allocate(40 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), 66 * kMiB) << "the old segment went back";
  EXPECT_EQ(native.allocate(24 * kMiB, kStream).data, young.data) << "the young one stays";
  EXPECT_EQ(native.memory_stats().num_device_free, 1);
  EXPECT_EQ(native.memory_stats().num_alloc_retries, 0) << "done before memory ran out";
}

TEST_F(AllocatorLadder, SegmentsThatACollectionKeepsStayAsOldAsTheyAre) {
  FakeMemory plain(300 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.garbage_collection_threshold = 0.5;
  CachingAllocator native(kCPU, plain, options);
  let_time_pass(native);  // takes the 2 MiB of small requests
  const Block oldest = native.allocate(70 * kMiB, kStream);
  const Block old = native.allocate(40 * kMiB, kStream);
  const Block young = native.allocate(44 * kMiB, kStream);
  native.free(oldest);
  let_time_pass(native);
  native.free(old);
  native.free(native.allocate(100'000, kStream));
  native.free(young);
  ASSERT_EQ(plain.taken(), (2 + 70 + 40 + 44) * kMiB);
  native.allocate(72 * kMiB, kStream);  // the first collection
  ASSERT_EQ(plain.taken(), (40 + 44 + 2 + 72) * kMiB);
  native.allocate(74 * kMiB, kStream);  // the second one
  EXPECT_EQ(plain.taken(), (44 + 2 + 72 + 74) * kMiB);
  EXPECT_EQ(native.allocate(44 * kMiB, kStream).data, young.data);
}

TEST_F(AllocatorLadder, GarbageCollectionCountsAllAgesForTheAverage) {
  FakeMemory plain(400 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.garbage_collection_threshold = 0.25;
  CachingAllocator native(kCPU, plain, options);
  let_time_pass(native);  // takes the 2 MiB of small requests
  const Block old = native.allocate(40 * kMiB, kStream);
  const Block oldest = native.allocate(44 * kMiB, kStream);
  const Block young = native.allocate(48 * kMiB, kStream);
  native.free(oldest);
  let_time_pass(native);
  let_time_pass(native);
  let_time_pass(native);
  native.free(old);
  native.free(native.allocate(100'000, kStream));
  native.free(young);
  // The middle age is that of a few searches, far below the average of the three.
  native.allocate(52 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), (2 + 40 + 48 + 52) * kMiB) << "the oldest alone went back";
}

TEST_F(AllocatorLadder, GarbageCollectionEndsWhenEnoughHasGoneBack) {
  FakeMemory plain(200 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.garbage_collection_threshold = 0.5;
  CachingAllocator native(kCPU, plain, options);
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(native.allocate(26 * kMiB, kStream));
  for (const Block& block : blocks) native.free(block);  // 4 MiB above the threshold
  native.allocate(30 * kMiB, kStream);
  EXPECT_EQ(native.memory_stats().num_device_free, 1);
  EXPECT_EQ(plain.taken(), (3 * 26 + 30) * kMiB);
}

TEST_F(AllocatorLadder, GarbageCollectionLeavesSmallSegmentsAlone) {
  FakeMemory plain(100 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.garbage_collection_threshold = 0.01;
  CachingAllocator native(kCPU, plain, options);
  let_time_pass(native);
  native.free(native.allocate(20 * kMiB, kStream));
  let_time_pass(native);
  native.allocate(30 * kMiB, kStream);
  EXPECT_EQ(plain.taken(), (2 + 30) * kMiB);
}

TEST_F(AllocatorLadder, SegmentsOfBothKindsServeSideBySide) {
  const Block expandable = allocator.allocate(8 * kMiB, kStream);
  allocator.set_options(plain_segments());
  const Block plain = allocator.allocate(2 * kMiB, kStream);
  std::memset(expandable.data, 1, expandable.bytes);
  std::memset(plain.data, 2, plain.bytes);
  const Block rest = allocator.allocate(18 * kMiB, kStream);
  allocator.free(expandable);
  const Block again = allocator.allocate(8 * kMiB, kStream);
  EXPECT_EQ(again.data, expandable.data) << "memory of the form before the option changed";
  EXPECT_EQ(static_cast<unsigned char*>(plain.data)[kMiB], 2);
  allocator.set_options({});
  allocator.free(rest);
  const Block beside = allocator.allocate(4 * kMiB, kStream);
  EXPECT_EQ(beside.data, static_cast<std::byte*>(plain.data) + 2 * kMiB);
  EXPECT_EQ(beside.bytes, 4 * kMiB);
  allocator.free(beside);
  allocator.free(again);
  allocator.free(plain);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
}

TEST_F(AllocatorLadder, SizesAreRoundedByPowersOfTwoWhereAskedFor) {
  AllocatorOptions options;
  options.roundup_power2_divisions = {4};
  allocator.set_options(options);
  for (const auto& [asked, given] : {std::pair{size_t{1200}, size_t{1536}},
                                     {size_t{5000}, size_t{5120}},
                                     {size_t{5121}, size_t{6144}},
                                     {kMiB + 1, kMiB + kMiB / 4}}) {
    EXPECT_EQ(allocator.allocate(asked, kStream).bytes, given) << asked;
  }
  options.roundup_power2_divisions = {1, 2};  // below 1 MiB as before, above in halves
  allocator.set_options(options);
  EXPECT_EQ(allocator.allocate(5121, kStream).bytes, 5632u);
  EXPECT_EQ(allocator.allocate(kMiB + 1, kStream).bytes, kMiB + kMiB / 2);
  const DeviceMemoryStats stats = allocator.memory_stats();
  EXPECT_LT(stats.requested_bytes.all.current, stats.allocated_bytes.all.current);
}

TEST_F(AllocatorLadder, EachClassOfSizesHasItsOwnSteps) {
  BookMemory large(4096 * kMiB);
  CachingAllocator on_book(kBookDevice, large);
  on_book.free(on_book.allocate(5632, kBookStream));  // waits for a request of its size
  AllocatorOptions options;
  options.roundup_power2_divisions = {4};
  on_book.set_options(options);
  EXPECT_EQ(on_book.allocate(5121, kBookStream).bytes, 6144u) << "not the 5632 that wait";
  options.roundup_power2_divisions = {0, 2, 4, 8};  // below 1 MiB, below 2, below 4, above
  on_book.set_options(options);
  for (const auto& [asked, given] : {std::pair{size_t{5121}, size_t{5632}},
                                     {kMiB - 1, kMiB},
                                     {kMiB, kMiB},
                                     {kMiB + 1, kMiB + kMiB / 2},
                                     {2 * kMiB - 1, 2 * kMiB},
                                     {2 * kMiB + 1, 2 * kMiB + kMiB / 2},
                                     {4 * kMiB + 1, 4 * kMiB + kMiB / 2},
                                     {100 * kMiB, 104 * kMiB}}) {
    const Block block = on_book.allocate(asked, kBookStream);
    EXPECT_EQ(block.bytes, given) << asked;
    on_book.free(block);
  }
  on_book.set_options({});
  EXPECT_EQ(on_book.allocate(5121, kBookStream).bytes, 5632u);
}

TEST_F(AllocatorLadder, RequestsOfTheSizeThatIsNotSplitTakeWholeBlocks) {
  FakeMemory plain(256 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.max_split_size = 40 * kMiB;
  CachingAllocator native(kCPU, plain, options);
  native.free(native.allocate(60 * kMiB, kStream));
  EXPECT_EQ(native.allocate(38 * kMiB, kStream).bytes, 38 * kMiB) << "below: not of the large one";
  EXPECT_EQ(plain.taken(), 98 * kMiB);
  const Block least = native.allocate(40 * kMiB + 512, kStream);
  EXPECT_EQ(least.bytes, 60 * kMiB) << "20 MiB less than 512 bytes more";
  native.free(least);
  EXPECT_EQ(native.allocate(40 * kMiB, kStream).bytes, 40 * kMiB) << "20 MiB would be wasted";
  EXPECT_EQ(plain.taken(), 138 * kMiB);
}

TEST_F(AllocatorLadder, BlocksThatAreNotSplitGoBackFirst) {
  FakeMemory plain(100 * kMiB, /*has_granules=*/false);
  AllocatorOptions options;
  options.max_split_size = 40 * kMiB;
  CachingAllocator native(kCPU, plain, options);
  const Block oversize = native.allocate(50 * kMiB, kStream),
              other = native.allocate(30 * kMiB, kStream);
  native.free(oversize);
  native.free(other);
  native.allocate(36 * kMiB, kStream);  // neither fits: the large one may not be split
  EXPECT_EQ(plain.taken(), (30 + 36) * kMiB);
  EXPECT_EQ(native.allocate(30 * kMiB, kStream).data, other.data);
  EXPECT_EQ(native.memory_stats().num_alloc_retries, 1);
}

TEST_F(AllocatorLadder, CallbacksAreCalledInOrderUntilTheyAreRemoved) {
  const Block kept = allocator.allocate(30 * kMiB, kStream);
  std::string calls;
  const int first = allocator.add_free_memory_callback([&] {
    calls += "a";
    return false;
  });
  const int second = allocator.add_free_memory_callback([&] {
    calls += "b";
    return false;
  });
  EXPECT_NE(first, second);
  EXPECT_THROW(allocator.allocate(10 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(calls, "ab");
  allocator.remove_free_memory_callback(first);
  EXPECT_THROW(allocator.allocate(10 * kMiB, kStream), OutOfMemoryError);
  EXPECT_EQ(calls, "abb");
  allocator.free(kept);
  allocator.allocate(10 * kMiB, kStream);
  EXPECT_EQ(calls, "abb") << "cached memory served it";
}

TEST_F(AllocatorLadder, AFailedRequestLeavesAPlannedStepAsItWas) {
  allocator.set_planned(true);
  for (int step = 0; step < 4; ++step) {
    allocator.mark_step(kStream);
    const Block a = allocator.allocate(4 * kMiB, kStream);
    EXPECT_THROW(allocator.allocate(40 * kMiB, kStream), OutOfMemoryError);
    const Block b = allocator.allocate(2 * kMiB, kStream);
    allocator.free(a);
    allocator.free(b);
  }
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_EQ(allocator.memory_stats().num_ooms, 4);
  EXPECT_EQ(allocator.memory_stats().planned_lower_bound, static_cast<int64_t>(44 * kMiB));
}

}  // namespace
}  // namespace lockstep
