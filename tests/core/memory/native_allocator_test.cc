#include "tests/core/memory/native_allocator.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/memory/trace_replay.h"
#include "core/memory/units.h"
#include "tests/core/memory/book_memory.h"

namespace lockstep {
namespace {

// Expected values are those in the README beside the traces.
TEST(NativeAllocator, ReservesWhatPyTorchDoesOnTracesOfRealRuns) {
  const std::filesystem::path folder = LOCKSTEP_SOURCE_DIR "/../shared/traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto reserved = [&](const char* file) {
    BookMemory memory(4096 * kMiB);
    NativeAllocator allocator(memory);
    const AllocationTrace trace = read_allocation_trace((folder / file).string());
    return replay(trace, allocator, Stream{}).peak_reserved_bytes / static_cast<int64_t>(kMiB);
  };
  EXPECT_EQ(reserved("gpt_fixed.trace"), 152);
  EXPECT_EQ(reserved("gpt_varlen.trace"), 172);
  EXPECT_EQ(reserved("lstm_varlen.trace"), 14);
}

TEST(NativeAllocator, SplitsAndJoinsAsPublished) {
  BookMemory memory(64 * kMiB);
  NativeAllocator allocator(memory);
  const auto get = [&](size_t bytes) { return allocator.allocate(bytes, Stream{}); };
  const Block small = get(1);
  EXPECT_EQ(small.bytes, 512u);
  const Block rest = get(1 * kMiB);
  EXPECT_EQ(static_cast<std::byte*>(rest.data), static_cast<std::byte*>(small.data) + 512);
  allocator.free(small);
  allocator.free(rest);
  const Block large = get(20 * kMiB - 1);  // above 10 MiB, so it gets a segment of its own
  EXPECT_EQ(large.bytes, 20 * kMiB);
  allocator.free(large);
  const Block whole = get(19 * kMiB);  // a remainder of 1 MiB is too small to split off
  EXPECT_EQ(whole.data, large.data);
  EXPECT_EQ(whole.bytes, 20 * kMiB);
  allocator.free(whole);
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(22 * kMiB));
  const Block all = get(63 * kMiB);  // fits only after cached segments were released
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(64 * kMiB));
  EXPECT_THROW(get(1), OutOfMemoryError);
  allocator.free(all);
  allocator.free(get(1));
  allocator.empty_cache();
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_THROW(get(size_t{1} << 63), OutOfMemoryError);
}

}  // namespace
}  // namespace lockstep
