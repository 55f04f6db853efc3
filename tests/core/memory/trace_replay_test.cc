#include "core/memory/trace_replay.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep
