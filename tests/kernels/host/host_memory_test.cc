#include "kernels/host/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/host/host_device.h"
#include "tests/core/base/child_process.h"

namespace lockstep::host {
namespace {

using ::testing::Each;
using ::testing::Gt;

constexpr size_t kGranule = size_t{1} << 16;
constexpr size_t kBudget = 16 * kGranule;

class HostMemoryTest : public ::testing::Test {
 protected:
  static void fill(void* address, char value) { std::memset(address, value, kGranule); }
  static bool holds(const void* address, char value) {
    const std::vector<char> expected(kGranule, value);
    return std::memcmp(address, expected.data(), kGranule) == 0;
  }
  static std::byte* at(void* address, size_t granule) {
    return static_cast<std::byte*>(address) + granule * kGranule;
  }
  std::vector<Granule> make(size_t count) {
    std::vector<Granule> granules(count);
    EXPECT_TRUE(memory.create(granules));
    EXPECT_THAT(granules, Each(Gt(0u)));
    return granules;
  }

  HostMemory memory{kBudget, kGranule};
};

TEST_F(HostMemoryTest, TheBudgetIsAllThereIs) {
  EXPECT_EQ(memory.total(), kBudget);
  EXPECT_EQ(memory.available(), kBudget);
  void* const first = memory.allocate(kBudget - 1000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 512, 0u);
  EXPECT_EQ(memory.available(), 1000u);
  EXPECT_EQ(memory.allocate(1001), nullptr);
  EXPECT_EQ(memory.allocate(size_t{1} << 63), nullptr);
  std::array<Granule, 1> granule{};
  EXPECT_FALSE(memory.create(granule));
  EXPECT_EQ(granule[0], 0u);
  memory.release(first, kBudget - 1000);
  EXPECT_EQ(memory.available(), kBudget);
  memory.set_budget(100);
  EXPECT_EQ(memory.allocate(101), nullptr);
  EXPECT_EQ(memory.total(), 100u);
}

TEST_F(HostMemoryTest, ABudgetBelowWhatIsHeldGivesNothing) {
  void* const block = memory.allocate(1000);
  memory.set_budget(10);
  EXPECT_EQ(memory.available(), 0u);
  EXPECT_EQ(memory.allocate(1), nullptr);
  memory.release(block, 1000);
  EXPECT_EQ(memory.available(), 10u);
}

TEST_F(HostMemoryTest, AGranuleKeepsItsBytesWhereverItIsMapped) {
  const std::vector<Granule> granules = make(2);
  void* const first = memory.reserve(4 * kGranule);
  void* const second = memory.reserve(2 * kGranule);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kGranule, 0u);
  ASSERT_TRUE(memory.map(at(first, 1), granules));
  fill(at(first, 1), 'a');
  fill(at(first, 2), 'b');
  memory.unmap(at(first, 1), 2 * kGranule);
  const std::array<Granule, 2> swapped{granules[1], granules[0]};
  ASSERT_TRUE(memory.map(second, swapped));
  EXPECT_TRUE(holds(second, 'b'));
  EXPECT_TRUE(holds(at(second, 1), 'a'));
  memory.unmap(second, 2 * kGranule);
  memory.destroy(granules);
  memory.unreserve(first, 4 * kGranule);
  memory.unreserve(second, 2 * kGranule);
  EXPECT_EQ(memory.available(), kBudget);
}

TEST_F(HostMemoryTest, AGranuleMappedTwiceIsTheSameMemory) {
  const std::vector<Granule> granules = make(1);
  void* const range = memory.reserve(2 * kGranule);
  ASSERT_TRUE(memory.map(range, granules));
  ASSERT_TRUE(memory.map(at(range, 1), granules));
  fill(range, 'x');
  EXPECT_TRUE(holds(at(range, 1), 'x'));
}

TEST_F(HostMemoryTest, ScatteredGranulesMakeOneLargeBlock) {
  const std::vector<Granule> granules = make(8);
  void* const range = memory.reserve(8 * kGranule);
  ASSERT_TRUE(memory.map(range, granules));
  for (size_t i = 0; i < 8; ++i) fill(at(range, i), static_cast<char>('a' + i));
  memory.unmap(range, 8 * kGranule);
  const std::array<Granule, 4> scattered{granules[6], granules[1], granules[2], granules[5]};
  ASSERT_TRUE(memory.map(range, scattered));
  EXPECT_TRUE(holds(range, 'g'));
  EXPECT_TRUE(holds(at(range, 1), 'b'));
  EXPECT_TRUE(holds(at(range, 2), 'c'));
  EXPECT_TRUE(holds(at(range, 3), 'f'));
}

TEST_F(HostMemoryTest, AMappingThatFailsHalfWayIsTakenBack) {
  const std::vector<Granule> granules = make(6);
  // Not contiguous, so that mapping them takes several system calls.
  const std::array<Granule, 5> mixed{granules[0], granules[2], granules[3], granules[5],
                                     granules[1]};
  void* const range = memory.reserve(6 * kGranule);
  for (int64_t nth = 1; nth <= 5; ++nth) {
    const HostFaultGuard fault(HostFault::kMap, nth);
    EXPECT_FALSE(memory.map(range, mixed)) << nth;
    EXPECT_EQ(fault.calls(), nth);
  }
  EXPECT_EQ(memory.available(), kBudget - 6 * kGranule);
  // No part of the range is still mapped: all of it can be mapped again.
  ASSERT_TRUE(memory.map(range, granules));
  memory.unmap(range, 6 * kGranule);
  memory.unreserve(range, 6 * kGranule);
  EXPECT_FALSE(memory.map(range, granules)) << "the range is gone";
}

TEST_F(HostMemoryTest, DestroyedGranulesGiveTheirMemoryBack) {
  const std::vector<Granule> granules = make(4);
  void* const range = memory.reserve(4 * kGranule);
  ASSERT_TRUE(memory.map(range, granules));
  EXPECT_EQ(memory.resident(), 0u);
  for (size_t i = 0; i < 4; ++i) fill(at(range, i), 'x');
  EXPECT_GE(memory.resident(), 4 * kGranule);
  memory.unmap(range, 4 * kGranule);
  memory.destroy(std::span(granules).first(3));
  EXPECT_LE(memory.resident(), kGranule);
  // A new granule holds no data of a destroyed one.
  const std::vector<Granule> fresh = make(3);
  ASSERT_TRUE(memory.map(range, fresh));
  EXPECT_TRUE(holds(range, 0));
}

TEST_F(HostMemoryTest, EveryCallCanBeMadeToFail) {
  {
    const HostFaultGuard fault(HostFault::kAllocate, 2);
    void* const block = memory.allocate(100);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(memory.allocate(100), nullptr);
    memory.release(block, 100);
  }
  {
    const HostFaultGuard fault(HostFault::kCreate, 3);
    std::array<Granule, 4> granules{};
    EXPECT_FALSE(memory.create(granules));
    EXPECT_THAT(granules, Each(Granule{0}));
  }
  {
    const HostFaultGuard fault(HostFault::kReserve, 1);
    EXPECT_EQ(memory.reserve(kGranule), nullptr);
  }
  {
    const HostFaultGuard fault(HostFault::kPinned, 1);
    EXPECT_EQ(memory.allocate_pinned(100), nullptr);
  }
  EXPECT_EQ(memory.available(), kBudget);
  void* const pinned = memory.allocate_pinned(100);
  ASSERT_NE(pinned, nullptr);
  std::memset(pinned, 1, 100);
  memory.release_pinned(pinned, 100);
}

TEST_F(HostMemoryTest, WhatMakesNoSenseIsRefused) {
  const std::vector<Granule> granules = make(2);
  void* const range = memory.reserve(2 * kGranule);
  EXPECT_EQ(memory.reserve(kGranule + 1), nullptr);
  EXPECT_EQ(memory.reserve(size_t{1} << 62), nullptr);
  const std::array<Granule, 1> unknown{999};
  EXPECT_FALSE(memory.map(range, unknown));
  EXPECT_FALSE(memory.map(at(range, 1), granules)) << "leaves the range";
  EXPECT_FALSE(memory.map(static_cast<std::byte*>(range) + 512, std::span(granules).first(1)));
  ASSERT_TRUE(memory.map(range, granules));
  EXPECT_FALSE(memory.map(range, std::span(granules).first(1))) << "taken";
  fill(range, 'x');
  memory.unreserve(range, 2 * kGranule);
  EXPECT_TRUE(holds(range, 'x')) << "mapped ranges stay";
}

TEST_F(HostMemoryTest, WithoutGranulesThereIsPlainMemoryOnly) {
  HostMemory plain(kBudget, 0);
  EXPECT_EQ(plain.granularity(), 0u);
  EXPECT_EQ(plain.reserve(kGranule), nullptr);
  std::array<Granule, 1> granule{};
  EXPECT_FALSE(plain.create(granule));
  void* const block = plain.allocate(1000);
  EXPECT_NE(block, nullptr);
  plain.release(block, 1000);
}

TEST_F(HostMemoryTest, ThreadsMayUseItAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      void* const range = memory.reserve(3 * kGranule);
      for (int i = 0; i < 50; ++i) {
        std::array<Granule, 3> granules{};
        if (!memory.create(granules)) continue;
        ASSERT_TRUE(memory.map(range, granules));
        std::memset(range, t, 100);
        ASSERT_EQ(*static_cast<char*>(range), t);
        memory.unmap(range, 3 * kGranule);
        memory.destroy(granules);
      }
      memory.unreserve(range, 3 * kGranule);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.available(), kBudget);
}

TEST_F(HostMemoryTest, AForkedChildKeepsWhatItWritesToItself) {
  const std::vector<Granule> granules = make(2);
  void* const range = memory.reserve(2 * kGranule);
  ASSERT_TRUE(memory.map(range, granules));
  fill(range, 'p');
  EXPECT_EQ(status_of_child([&] {
              memory.leave_parent();
              bool good = holds(range, 'p');
              fill(range, 'c');
              good = good && holds(range, 'c');
              memory.unmap(range, 2 * kGranule);
              good = good && memory.map(range, granules);
              fill(range, 'd');
              memory.unmap(range, 2 * kGranule);
              memory.destroy(granules);
              return good;
            }),
            0);
  EXPECT_TRUE(holds(range, 'p'));
}

}  // namespace
}  // namespace lockstep::host
