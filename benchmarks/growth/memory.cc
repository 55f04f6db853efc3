// The caching allocator with many live blocks.

#include <vector>

#include "benchmarks/growth/growth_case.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/memory/book_memory.h"

namespace lockstep::growth {

namespace {

/// Allocates small blocks that all stay live, so that the range of the default policy grows.
void allocate_blocks(int64_t blocks, Meter& meter) {
  BookMemory memory(size_t{64} << 30);
  CachingAllocator allocator(Device{DeviceType::kHost, 0}, memory);
  const Stream stream = default_stream(Device{DeviceType::kHost, 0});
  std::vector<Block> live;
  live.reserve(static_cast<size_t>(blocks));
  meter.start();
  for (int64_t i = 0; i < blocks; ++i) live.push_back(allocator.allocate(512, stream));
  for (const Block& block : live) allocator.free(block);
  meter.stop();
}

}  // namespace

std::vector<GrowthCase> memory_cases() {
  return {{"blocks", "live blocks of 512 bytes", 125'000, false, allocate_blocks}};
}

}  // namespace lockstep::growth
