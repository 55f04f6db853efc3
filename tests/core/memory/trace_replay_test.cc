#include "core/memory/trace_replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/memory/units.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/native_allocator.h"

namespace lockstep {
namespace {

TEST(TraceReplay, CountsBytesAndDriverCalls) {
  BookMemory memory(1024 * kMiB);
  NativeAllocator allocator(memory);
  int marks = 0;
  const AllocationTrace trace = parse_allocation_trace(
      "m 0\na 0 100\na 1 3000000\nf 0\nf 1\nm 1\na 2 100\na 3 3000000\nf 2\nm 2\na 4 30000000\n",
      "made up");
  const ReplayResult result = replay(trace, allocator, Stream{}, [&] { ++marks; });
  EXPECT_EQ(result.peak_live_bytes, 33000000);
  EXPECT_EQ(result.peak_reserved_bytes, static_cast<int64_t>((2 + 20 + 30) * kMiB));
  EXPECT_EQ(result.driver_calls, 3);
  EXPECT_EQ(result.driver_calls_after_first_step, 1);
  EXPECT_DOUBLE_EQ(result.ratio(), 52.0 * kMiB / 33000000);
  EXPECT_EQ(marks, 3);
  EXPECT_GT(time_replay(trace, allocator, Stream{}, [&] { ++marks; }), 0);
  EXPECT_EQ(marks, 6);
  EXPECT_EQ(allocator.stats().allocated, 0);
}

TEST(TraceReplay, OfOneStepCountsAllDriverCallsAsLate) {
  BookMemory memory(1024 * kMiB);
  NativeAllocator allocator(memory);
  const ReplayResult result =
      replay(parse_allocation_trace("m 0\na 0 100\na 1 30000000\nf 1\n", "made up"), allocator, {});
  EXPECT_EQ(result.driver_calls, 2);
  EXPECT_EQ(result.driver_calls_after_first_step, 2);
  EXPECT_EQ(allocator.stats().allocated, 0) << "all blocks are freed";
  const ReplayResult again = replay(parse_allocation_trace("a 0 100\n", "made up"), allocator, {});
  EXPECT_EQ(again.driver_calls, 0) << "calls before the replay do not count";
  EXPECT_EQ(again.peak_live_bytes, 100);
  const AllocationTrace no_block = parse_allocation_trace("m 0\n", "made up");
  EXPECT_DOUBLE_EQ(replay(no_block, allocator, {}).ratio(), 32.0 * kMiB) << "of no live byte";
}

/// Counts its requests.
class CountingAllocator final : public Allocator {
 public:
  Block allocate(size_t bytes, const Stream& stream) override {
    streams.push_back(stream);
    return {this, bytes, nullptr, this};
  }
  void free(const Block& block) noexcept override {
    EXPECT_EQ(block.owner, this);
    ++frees;
  }
  void record_stream(const Block&, const Stream&) override {}
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}

  std::vector<Stream> streams;
  int frees = 0;
};

TEST(TraceReplay, MakesEachRequestOnItsStreamAndFreesEachBlockOnce) {
  const AllocationTrace trace = parse_allocation_trace("a 0 1\na 1 2\nf 0\nm x\na 2 0\n", "t");
  const Stream stream{kCPU, 7};
  CountingAllocator counted;
  replay(trace, counted, stream);
  EXPECT_EQ(counted.streams, (std::vector<Stream>(3, stream)));
  EXPECT_EQ(counted.frees, 3);
  EXPECT_GT(time_replay(trace, counted, stream), 0);
  EXPECT_EQ(counted.frees, 6);
}

}  // namespace
}  // namespace lockstep
