#include "core/memory/caching_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/cpu_memory.h"
#include "core/memory/null_memory.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

/// A live block filled with one byte value.
struct Held {
  Block block;
  size_t bytes;
  unsigned char pattern;

  bool intact() const {
    const auto* data = static_cast<const unsigned char*>(block.data);
    for (size_t i = 0; i < bytes; i += i < 4096 || i + 4096 > bytes ? 1 : 509) {
      if (data[i] != pattern) return false;
    }
    return true;
  }
};

Held hold(Allocator& allocator, size_t bytes, unsigned char pattern, const Stream& stream = {}) {
  const Held held{allocator.allocate(bytes, stream), bytes, pattern};
  std::memset(held.block.data, pattern, bytes);
  return held;
}

size_t size_of(uint16_t number) {
  switch (number % 8) {
    case 0:
      return size_t{number} * 97 + 1;
    case 1:
      return size_t{number} * 16 + 1;
    default:
      return number / 16 + 1u;
  }
}

/// Random requests and frees on two streams, checked against a list of live blocks.
void check_random_program(CachingAllocator& allocator, FakeMemory& memory) {
  std::vector<Held> alive;
  int64_t expected_peak = 0;
  int64_t allocations = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  for (const auto& [choice, number] : steps) {
    if (choice % 32 == 31) {
      allocator.empty_cache();
    } else if (choice % 5 < 3 || alive.empty()) {
      alive.push_back(hold(allocator, size_of(number), choice));
      ++allocations;
      RC_ASSERT(alive.back().block.bytes >= alive.back().bytes);
      RC_ASSERT(reinterpret_cast<uintptr_t>(alive.back().block.data) % 512 == 0);
    } else {
      const size_t at = number % alive.size();
      RC_ASSERT(alive[at].intact());
      allocator.free(alive[at].block);
      alive.erase(alive.begin() + static_cast<long>(at));
    }
    int64_t on_loan = 0;
    for (const Held& held : alive) on_loan += static_cast<int64_t>(held.block.bytes);
    expected_peak = std::max(expected_peak, on_loan);
    RC_ASSERT(allocator.stats().allocated == on_loan);
    RC_ASSERT(allocator.stats().reserved == static_cast<int64_t>(memory.taken()));
  }
  for (const Held& held : alive) RC_ASSERT(held.intact());
  RC_ASSERT(allocator.stats().peak_allocated == expected_peak);
  RC_ASSERT(allocator.stats().allocations == allocations);
  RC_ASSERT(allocator.stats().reserved >= allocator.stats().allocated);

  // Chunks tile their segments and report the state of each block.
  size_t live = 0;
  for (const SegmentInfo& segment : allocator.snapshot().segments) {
    uintptr_t at = segment.address;
    for (const BlockInfo& block : segment.blocks) {
      RC_ASSERT(block.address == at);
      at += block.size;
      live += block.state == BlockInfo::State::kActiveAllocated ? 1 : 0;
    }
    RC_ASSERT(at == segment.address + segment.total_size);
  }
  RC_ASSERT(live == alive.size());

  for (const Held& held : alive) allocator.free(held.block);
  RC_ASSERT(allocator.stats().allocated == 0);
  allocator.empty_cache();
  RC_ASSERT(memory.taken() == 0u);
  RC_ASSERT(memory.wrong_calls == 0);
  RC_ASSERT(allocator.wrong_frees() == 0);
}

RC_GTEST_PROP(CachingAllocator, BlocksNeverOverlapAndBooksAddUp, ()) {
  FakeMemory memory(512 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  check_random_program(allocator, memory);
}

RC_GTEST_PROP(CachingAllocator, BlocksOfPlainSegmentsNeverOverlapAndBooksAddUp, ()) {
  FakeMemory memory(512 * kMiB, /*has_granules=*/false);
  CachingAllocator allocator(kCPU, memory);
  check_random_program(allocator, memory);
}

RC_GTEST_PROP(CachingAllocator, MetaCountsWhatCpuHandsOut, ()) {
  CpuMemory cpu_memory(size_t{1} << 36);
  NullMemory null_memory;
  CachingAllocator cpu(kCPU, cpu_memory);
  CachingAllocator meta(kMeta, null_memory);
  std::vector<std::pair<Block, Block>> alive;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  for (const auto& [choice, number] : steps) {
    if (choice % 5 < 3 || alive.empty()) {
      const size_t bytes = size_t{number} * (choice % 2 == 0 ? 1 : 777);
      alive.emplace_back(cpu.allocate(bytes, kStream), meta.allocate(bytes, kStream));
      RC_ASSERT((alive.back().second.data == nullptr));
      RC_ASSERT(alive.back().second.bytes == alive.back().first.bytes);
    } else {
      const auto at = alive.begin() + static_cast<long>(number % alive.size());
      cpu.free(at->first);
      meta.free(at->second);
      alive.erase(at);
    }
    if (choice == 0) {
      cpu.reset_peak();
      meta.reset_peak();
    }
    RC_ASSERT(meta.stats().allocated == cpu.stats().allocated);
    RC_ASSERT(meta.stats().peak_allocated == cpu.stats().peak_allocated);
    RC_ASSERT(meta.stats().reserved == cpu.stats().reserved);
    RC_ASSERT(meta.stats().allocations == cpu.stats().allocations);
    RC_ASSERT(meta.stats().system_calls == cpu.stats().system_calls);
  }
}

TEST(CachingAllocator, BlocksAreWholeUnitsOfTheirMemory) {
  CpuMemory cpu_memory(size_t{1} << 36);
  FakeMemory device_memory(512 * kMiB);
  CachingAllocator cpu(kCPU, cpu_memory);
  CachingAllocator device(kCPU, device_memory);
  const auto expect_units = [](CachingAllocator& allocator, uintptr_t unit) {
    std::vector<Block> blocks;
    for (const size_t bytes : {1, 16, 63, 64, 65, 512, 513}) {
      blocks.push_back(allocator.allocate(bytes, kStream));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().data) % unit, 0u) << bytes;
    }
    size_t whole = 0;
    for (const size_t bytes : {1, 16, 63, 64, 65, 512, 513})
      whole += (bytes + unit - 1) / unit * unit;
    EXPECT_EQ(allocator.stats().allocated, static_cast<int64_t>(whole));
    for (const Block& block : blocks) allocator.free(block);
  };
  expect_units(cpu, 64);
  expect_units(device, 512);
}

TEST(CachingAllocator, MetaHoldsMoreThanAnyMachine) {
  NullMemory memory;
  CachingAllocator meta(kMeta, memory);
  const Block block = meta.allocate(size_t{1} << 60, kStream);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(meta.stats().allocated, int64_t{1} << 60);
  expect_error<OutOfMemoryError>([&] { meta.allocate(SIZE_MAX, kStream); }, "[allocator]");
  meta.free(block);
  EXPECT_EQ(meta.stats().allocated, 0);
}

TEST(CachingAllocator, DevicesOfNegativeNumbersDoNotExist) {
  for (const Device device : {Device{DeviceType::kHost, -1}, Device{DeviceType::kCPU, -1},
                              Device{DeviceType::kCPU, 1}, Device{DeviceType::kMeta, 1}}) {
    expect_error<DeviceError>([&] { allocator(device); }, "there is no device");
  }
}

TEST(CachingAllocator, ZeroBytesGiveANullBlockThatMayBeFreed) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block none = allocator.allocate(0, kStream);
  EXPECT_EQ(none.data, nullptr);
  EXPECT_EQ(none.bytes, 0u);
  allocator.free(none);
  EXPECT_EQ(allocator.stats().allocations, 0);
  EXPECT_EQ(allocator.wrong_frees(), 0);
}

TEST(CachingAllocator, AbsurdSizesAreOutOfMemory) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  for (const size_t bytes : {SIZE_MAX, size_t{1} << 63, (size_t{1} << 63) - 1, size_t{1} << 62}) {
    expect_error<OutOfMemoryError>([&] { allocator.allocate(bytes, kStream); },
                                   "[allocator] out of memory");
  }
  allocator.free(allocator.allocate(1, kStream));
  const std::string absurd =
      "[allocator] out of memory: 4611686018427387905 bytes are more than any device has. Was a "
      "negative size converted?";
  expect_error<OutOfMemoryError>([&] { allocator.allocate((size_t{1} << 62) + 1, kStream); },
                                 absurd);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(size_t{1} << 62, kStream); },
                                 "above the budget");
}

TEST(CachingAllocator, StaysUsableAfterRunningOut) {
  FakeMemory memory(8 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Held first = hold(allocator, 6 * kMiB, 1);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(4 * kMiB, kStream); }, "out of memory");
  EXPECT_TRUE(first.intact());
  EXPECT_EQ(allocator.stats().allocations, 1) << "refusals are not counted";
  const Held rest = hold(allocator, 2 * kMiB, 2);
  allocator.free(first.block);
  EXPECT_THROW(allocator.allocate(6 * kMiB + 1, kStream), OutOfMemoryError);
  const Held again = hold(allocator, 6 * kMiB, 3);
  EXPECT_TRUE(rest.intact());
  allocator.free(rest.block);
  allocator.free(again.block);
  allocator.free(allocator.allocate(8 * kMiB, kStream));
}

TEST(CachingAllocator, FreedBlockIsReusedOnItsStreamAtOnce) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  for (const size_t bytes : {size_t{100}, 40 * kMiB / 1000, 3 * kMiB}) {
    const Block block = allocator.allocate(bytes, kStream);
    allocator.free(block);
    EXPECT_EQ(allocator.allocate(bytes, kStream).data, block.data);
  }
}

TEST(CachingAllocator, StretchesTheLastFreeRunInsteadOfLeavingAHole) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  for (size_t size = kMiB; size <= 8 * kMiB; size += kMiB) {
    allocator.free(allocator.allocate(size, kStream));
  }
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(8 * kMiB));
}

TEST(CachingAllocator, MapsAHoleThatTheRequestFillsExactly) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block hole = allocator.allocate(4 * kMiB, kStream);
  allocator.allocate(4 * kMiB, kStream);
  allocator.free(hole);
  allocator.empty_cache();
  EXPECT_EQ(allocator.allocate(4 * kMiB, kStream).data, hole.data);
}

TEST(CachingAllocator, MapsBehindAFreeBlockRatherThanBeforeIt) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block below = allocator.allocate(8 * kMiB, kStream);
  const Block block = allocator.allocate(4 * kMiB, kStream);
  allocator.free(below);
  allocator.empty_cache();
  allocator.free(block);
  EXPECT_EQ(allocator.allocate(6 * kMiB, kStream).data, block.data);
  EXPECT_EQ(memory.taken(), 6 * kMiB) << "of a free block nothing is left over";
}

TEST(CachingAllocator, TakesTheHighestHoleWhileLiveBytesFall) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  for (const size_t i : {4u, 7u}) allocator.free(blocks[i]);
  const auto address = [&](size_t block, size_t offset) {
    return static_cast<std::byte*>(blocks[block].data) + offset;
  };
  // The upper end of the hole; what is free above all blocks comes last, from its lower end.
  EXPECT_EQ(allocator.allocate(512 * 1024, kStream).data, address(4, 3 * kMiB / 2));
  EXPECT_EQ(allocator.allocate(7 * kMiB / 4, kStream).data, address(7, 0));
}

TEST(CachingAllocator, LeavesNothingOfAHoleThatItFillsWhileLiveBytesFall) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(2 * kMiB, kStream));
  for (const size_t i : {4u, 7u}) allocator.free(blocks[i]);
  EXPECT_EQ(allocator.allocate(2 * kMiB, kStream).data, blocks[4].data);
  const std::vector<SegmentInfo> segments = allocator.snapshot().segments;
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].blocks.size(), 8u);
}

TEST(CachingAllocator, TakesTheLowestPlaceThatFitsBeforeStepsAndWhileLiveBytesRise) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  std::vector<Block> blocks;
  const Block most = allocator.allocate(kMiB, kStream);  // so that the frees below count as small
  for (const size_t size : {4096, 512, 1024, 512, 2048, 512}) {
    blocks.push_back(allocator.allocate(size, kStream));
  }
  for (const size_t i : {4u, 2u, 0u}) allocator.free(blocks[i]);
  EXPECT_EQ(allocator.allocate(1024, kStream).data, blocks[2].data) << "what waits for this size";
  EXPECT_EQ(allocator.allocate(1500, kStream).data, blocks[0].data);
  EXPECT_EQ(allocator.allocate(2048, kStream).data, static_cast<std::byte*>(blocks[0].data) + 1536);
  allocator.free(most);
  allocator.mark_step(kStream);
  EXPECT_EQ(allocator.allocate(kMiB / 2, kStream).data, most.data) << "a step begins";
}

TEST(CachingAllocator, CountsThePeakSinceItsReset) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block a = allocator.allocate(kMiB, kStream);
  allocator.free(allocator.allocate(2 * kMiB, kStream));
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(3 * kMiB));
  allocator.reset_peak();
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(kMiB));
  allocator.free(a);
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(kMiB));
}

TEST(CachingAllocator, ARepeatedStepTakesNothingFromTheSystem) {
  CpuMemory memory(size_t{1} << 30);
  CachingAllocator allocator(kCPU, memory);
  const auto step = [&] {
    std::vector<Held> held;
    for (int i = 0; i < 40; ++i) {
      held.push_back(hold(allocator, size_t{1000} + static_cast<size_t>(i) * 77777, 5));
      if (i % 3 == 2) {
        allocator.free(held[held.size() / 2].block);
        held.erase(held.begin() + static_cast<long>(held.size() / 2));
      }
    }
    for (const Held& each : held) allocator.free(each.block);
  };
  const auto page_faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  step();
  const MemoryStats before = allocator.stats();
  step();
  const long faults = page_faults();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(allocator.stats().reserved, before.reserved);
  EXPECT_EQ(allocator.stats().system_calls, before.system_calls);
  // Ten steps touch some 150 MiB: tens of thousands of faults if every page were fresh.
  EXPECT_LT(page_faults() - faults, 1000);
}

TEST(CachingAllocator, WrongFreesAreCountedAndHarmless) {
  FakeMemory memory(64 * kMiB);
  FakeMemory other_memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  CachingAllocator other(kCPU, other_memory);
  const Held held = hold(allocator, 1000, 7);
  const Block theirs = other.allocate(1000, kStream);
  int on_the_stack = 0;

  allocator.free(theirs);
  allocator.free({&on_the_stack, 4, nullptr, &allocator});
  allocator.free({&on_the_stack, 4, &on_the_stack, &allocator});
  Block shifted = held.block;
  shifted.data = static_cast<std::byte*>(shifted.data) + 8;
  allocator.free(shifted);
  Block renamed = theirs;
  renamed.owner = &allocator;
  allocator.free(renamed);
  EXPECT_EQ(allocator.wrong_frees(), 5);

  allocator.free(held.block);
  allocator.free(held.block);
  const Held next = hold(allocator, 1000, 9);
  EXPECT_EQ(next.block.data, held.block.data);
  allocator.free(held.block);  // a stale handle from the previous loan
  EXPECT_EQ(allocator.wrong_frees(), 7);
  EXPECT_NE(allocator.allocate(1000, kStream).data, next.block.data);
  EXPECT_TRUE(next.intact());
  EXPECT_EQ(other.stats().allocated, 1024);
}

TEST(CachingAllocator, RawPointersAreFreedOnce) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const int64_t before = allocator.stats().allocated;
  void* const address = allocator.raw_alloc(1024, kStream);
  EXPECT_EQ(allocator.stats().allocated, before + 1024);
  allocator.raw_delete(address);
  EXPECT_EQ(allocator.stats().allocated, before);
  expect_error<DeviceError>([&] { allocator.raw_delete(address); }, "[raw_delete]", "once");
  int local = 0;
  EXPECT_THROW(allocator.raw_delete(&local), DeviceError);
  allocator.raw_delete(nullptr);
  EXPECT_EQ(allocator.raw_alloc(0, kStream), nullptr);
  EXPECT_EQ(allocator.wrong_frees(), 0);
}

TEST(CachingAllocator, WorksAsBeforeAfterAllItsLocksWereTaken) {
  FakeMemory memory(64 * kMiB);
  CachingAllocator allocator(kCPU, memory);
  const Block block = allocator.allocate(1000, kStream);
  allocator.lock_all();
  allocator.unlock_all();
  // Each of these takes one lock or more.
  allocator.free(block);
  allocator.set_options(plain_segments());
  allocator.raw_delete(allocator.raw_alloc(3 * kMiB, {kCPU, 1}));
  allocator.remove_oom_observer(allocator.add_oom_observer([](size_t, const std::string&) {}));
  allocator.record_memory_history(4);
  allocator.reset_accumulated_memory_stats();
  allocator.release_pool(allocator.create_pool());
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(allocator.allocate(512, kStream));
  EXPECT_EQ(allocator.memory_stats().allocation.all.current, 200);
  EXPECT_EQ(allocator.snapshot().trace.size(), 4u);
  allocator.empty_cache();
}

void use_from_threads(bool has_granules) {
  FakeMemory memory(512 * kMiB, has_granules);
  CachingAllocator allocator(kCPU, memory);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      std::vector<Held> held;
      unsigned state = t + 1;
      // Two threads share a stream, and threads free blocks that others allocated.
      const Stream stream{kCPU, static_cast<int32_t>(t / 2)};
      for (int i = 0; i < 2000; ++i) {
        state = state * 1664525u + 1013904223u;
        if (held.size() < 8 || state >> 31) {
          const size_t bytes = i % 64 == 0 ? 3 * kMiB : 1 + (state >> 8) % 5000;
          held.push_back(hold(allocator, bytes, static_cast<unsigned char>(state >> 16), stream));
        } else {
          EXPECT_TRUE(held.front().intact());
          allocator.free(held.front().block);
          held.erase(held.begin());
        }
        if (i % 100 == 0) allocator.empty_cache();
        if (held.size() > 40) {
          for (const Held& each : held) allocator.free(each.block);
          held.clear();
        }
      }
      for (const Held& each : held) {
        EXPECT_TRUE(each.intact());
        allocator.free(each.block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_EQ(allocator.wrong_frees(), 0);
  allocator.empty_cache();
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(memory.wrong_calls, 0) << memory.wrong_call;
}

TEST(CachingAllocator, ThreadsMayUseItAtOnce) { use_from_threads(true); }

TEST(CachingAllocator, ThreadsMayUsePlainSegmentsAtOnce) { use_from_threads(false); }

}  // namespace
}  // namespace lockstep
