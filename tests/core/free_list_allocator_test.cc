#include "core/free_list_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr Stream kStream{};

/// A block filled with one byte value.
struct Held {
  Block block;
  size_t bytes;
  unsigned char pattern;

  bool intact() const {
    const auto* data = static_cast<const unsigned char*>(block.data);
    for (size_t i = 0; i < bytes; ++i) {
      if (data[i] != pattern) return false;
    }
    return true;
  }
};

Held hold(Allocator& allocator, size_t bytes, unsigned char pattern) {
  const Held held{allocator.allocate(bytes, kStream), bytes, pattern};
  std::memset(held.block.data, pattern, bytes);
  return held;
}

RC_GTEST_PROP(FreeListAllocator, BlocksNeverOverlapAndFreedNeighboursJoin, ()) {
  FreeListAllocator allocator(64 * kMiB);
  std::vector<Held> alive;
  int64_t expected_peak = 0;
  const auto steps = *rc::gen::container<std::vector<std::pair<uint8_t, uint16_t>>>(
      rc::gen::arbitrary<std::pair<uint8_t, uint16_t>>());
  for (const auto& [choice, number] : steps) {
    if (choice % 5 < 3 || alive.empty()) {
      alive.push_back(
          hold(allocator, number % 8 == 0 ? size_t{number} * 16 + 1 : number + 1u, choice));
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
  }
  RC_ASSERT(allocator.stats().peak_allocated == expected_peak);
  for (const Held& held : alive) {
    RC_ASSERT(held.intact());
    allocator.free(held.block);
  }
  // Everything is one free run again: a block of the whole used size needs no growth.
  const int64_t reserved = allocator.stats().reserved;
  RC_ASSERT(allocator.stats().allocated == 0);
  RC_ASSERT(reserved >= expected_peak);
  const Block whole = allocator.allocate(static_cast<size_t>(reserved), kStream);
  RC_ASSERT(allocator.stats().reserved == reserved);
  allocator.free(whole);
}

TEST(FreeListAllocator, ZeroBytesGiveANullBlockThatMayBeFreed) {
  FreeListAllocator allocator(kMiB);
  const Block none = allocator.allocate(0, kStream);
  EXPECT_EQ(none.data, nullptr);
  EXPECT_EQ(none.bytes, 0u);
  allocator.free(none);
  EXPECT_EQ(allocator.stats().allocations, 0);
}

TEST(FreeListAllocator, StaysUsableAfterRunningOut) {
  FreeListAllocator allocator(4 * kMiB);
  const Held first = hold(allocator, 3 * kMiB, 1);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(2 * kMiB, kStream); }, "out of memory");
  expect_error<OutOfMemoryError>([&] { allocator.allocate(SIZE_MAX, kStream); }, "[allocator]");
  EXPECT_TRUE(first.intact());
  EXPECT_EQ(allocator.stats().allocations, 1) << "refusals are not counted";
  const Held rest = hold(allocator, kMiB, 2);
  allocator.free(first.block);
  EXPECT_THROW(allocator.allocate(3 * kMiB + 1, kStream), OutOfMemoryError);
  const Held again = hold(allocator, 3 * kMiB, 3);
  EXPECT_TRUE(rest.intact());
  allocator.free(rest.block);
  allocator.free(again.block);
  allocator.free(allocator.allocate(4 * kMiB, kStream));
}

TEST(FreeListAllocator, StretchesTheLastFreeRunInsteadOfLeavingAHole) {
  FreeListAllocator allocator(64 * kMiB);
  for (size_t size = kMiB; size <= 8 * kMiB; size += kMiB) {
    allocator.free(allocator.allocate(size, kStream));
  }
  EXPECT_EQ(allocator.stats().reserved, static_cast<int64_t>(8 * kMiB));
}

TEST(FreeListAllocator, TakesTheSmallestRunThatFits) {
  FreeListAllocator allocator(64 * kMiB);
  std::vector<Block> blocks;
  for (const size_t size : {4096, 512, 1024, 512, 2048, 512}) {
    blocks.push_back(allocator.allocate(size, kStream));
  }
  for (const size_t i : {0u, 2u, 4u}) allocator.free(blocks[i]);
  EXPECT_EQ(allocator.allocate(1024, kStream).data, blocks[2].data);
  EXPECT_EQ(allocator.allocate(1500, kStream).data, blocks[4].data);
}

TEST(FreeListAllocator, CountsThePeakSinceItsReset) {
  FreeListAllocator allocator(64 * kMiB);
  const Block a = allocator.allocate(kMiB, kStream);
  allocator.free(allocator.allocate(2 * kMiB, kStream));
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(3 * kMiB));
  allocator.reset_peak();
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(kMiB));
  allocator.free(a);
  EXPECT_EQ(allocator.stats().peak_allocated, static_cast<int64_t>(kMiB));
}

TEST(FreeListAllocator, ARepeatedStepTakesNothingFromTheSystem) {
  FreeListAllocator allocator(256 * kMiB);
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
  step();
  const MemoryStats before = allocator.stats();
  const long faults = page_faults();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(allocator.stats().reserved, before.reserved);
  EXPECT_EQ(allocator.stats().system_calls, before.system_calls);
  // Ten steps touch some 150 MiB, which would be tens of thousands of fresh small pages.
  EXPECT_LT(page_faults() - faults, 1000);
}

TEST(FreeListAllocator, ThreadsMayUseItAtOnce) {
  FreeListAllocator allocator(256 * kMiB);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      std::vector<Held> held;
      unsigned state = t + 1;
      for (int i = 0; i < 2000; ++i) {
        state = state * 1664525u + 1013904223u;
        if (held.size() < 8 || state >> 31) {
          held.push_back(
              hold(allocator, 1 + (state >> 8) % 5000, static_cast<unsigned char>(state >> 16)));
        } else {
          EXPECT_TRUE(held.front().intact());
          allocator.free(held.front().block);
          held.erase(held.begin());
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
}

TEST(FreeListAllocator, AddressSpaceThatTheSystemRefusesIsOutOfMemory) {
  expect_error<OutOfMemoryError>([] { FreeListAllocator allocator(size_t{1} << 60); },
                                 "cannot reserve", "ulimit -v");
}

}  // namespace
}  // namespace lockstep
