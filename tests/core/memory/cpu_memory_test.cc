#include "core/memory/cpu_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

#include "core/memory/units.h"

namespace lockstep {
namespace {

uintptr_t address_number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

bool is_mapped(void* address) {
  // It fails where nothing is mapped.
  unsigned char state = 0;
  return ::mincore(address, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), &state) == 0;
}

TEST(CpuMemory, CountsWhatIsAllocatedAgainstItsTotal) {
  CpuMemory memory(10 * kMiB);
  EXPECT_EQ(memory.total(), 10 * kMiB);
  EXPECT_EQ(memory.available(), 10 * kMiB);
  void* const block = memory.allocate(3 * kMiB);
  ASSERT_NE(block, nullptr);
  std::memset(block, 7, 3 * kMiB);
  EXPECT_EQ(memory.available(), 7 * kMiB);
  EXPECT_EQ(memory.allocate(7 * kMiB + 1), nullptr);
  EXPECT_EQ(memory.available(), 7 * kMiB) << "a refusal costs nothing";
  std::vector<Granule> granules(4);
  EXPECT_FALSE(memory.create(granules));
  EXPECT_TRUE(memory.create(std::span(granules).first(3)));
  EXPECT_NE(granules[2], 0u);
  EXPECT_EQ(memory.available(), kMiB);
  memory.destroy(std::span(granules).first(3));
  void* const rest = memory.allocate(7 * kMiB);
  EXPECT_NE(rest, nullptr);
  EXPECT_EQ(memory.available(), 0u);
  memory.release(rest, 7 * kMiB);
  memory.release(block, 3 * kMiB);
  EXPECT_EQ(memory.available(), 10 * kMiB);
  EXPECT_FALSE(is_mapped(block));
}

TEST(CpuMemory, AddressesThatTheSystemRefusesCostNothing) {
  CpuMemory memory(SIZE_MAX);
  EXPECT_EQ(memory.allocate(SIZE_MAX / 2 + 1), nullptr);
  EXPECT_EQ(memory.allocate(size_t{1} << 62), nullptr);
  EXPECT_EQ(memory.available(), SIZE_MAX);
  EXPECT_EQ(memory.reserve(size_t{1} << 62), nullptr);
}

TEST(CpuMemory, BlocksAreWholeHugePagesAndNothingBesideThemIsKept) {
  const auto mapped_bytes = [] {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  };
  CpuMemory memory(64 * kMiB);
  for (int i = 0; i < 4; ++i) {
    const size_t before = mapped_bytes();
    auto* const block = static_cast<std::byte*>(memory.allocate(3 * kMiB));
    ASSERT_EQ(address_number(block) % (2 * kMiB), 0u);
    EXPECT_TRUE(is_mapped(block));
    EXPECT_TRUE(is_mapped(block + 4 * kMiB - 4096));
    EXPECT_FALSE(is_mapped(block + 4 * kMiB));
    EXPECT_LT(mapped_bytes() - before, 5 * kMiB);
    memory.release(block, 3 * kMiB);
    EXPECT_FALSE(is_mapped(block));
    EXPECT_FALSE(is_mapped(block + 4 * kMiB - 4096));
    EXPECT_LT(mapped_bytes(), before + kMiB);
  }
}

TEST(CpuMemory, AByteMoreThanAHugePageTakesTwo) {
  CpuMemory memory(64 * kMiB);
  for (const size_t bytes : {2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1}) {
    auto* const block = static_cast<std::byte*>(memory.allocate(bytes));
    const size_t end = bytes > 2 * kMiB ? 4 * kMiB : 2 * kMiB;
    EXPECT_TRUE(is_mapped(block + end - 4096)) << bytes;
    EXPECT_FALSE(is_mapped(block + end)) << bytes;
    block[bytes - 1] = std::byte{7};
    memory.release(block, bytes);
    EXPECT_FALSE(is_mapped(block)) << bytes;
  }
}

TEST(CpuMemory, WhatIsUnmappedIsZeroAndHasNoPages) {
  CpuMemory memory(64 * kMiB);
  EXPECT_EQ(memory.granularity(), 2 * kMiB);
  auto* const range = static_cast<unsigned char*>(memory.reserve(8 * kMiB));
  ASSERT_NE(range, nullptr);
  EXPECT_EQ(memory.available(), 64 * kMiB) << "addresses are no memory";
  std::array<Granule, 4> granules{};
  EXPECT_TRUE(memory.map(range, granules));
  std::memset(range, 9, 8 * kMiB);
  memory.unmap(range + 2 * kMiB, 4 * kMiB);
  EXPECT_EQ(range[2 * kMiB - 1], 9);
  EXPECT_EQ(range[2 * kMiB], 0);
  EXPECT_EQ(range[6 * kMiB - 1], 0);
  EXPECT_EQ(range[6 * kMiB], 9);
  memory.unreserve(range, 8 * kMiB);
  EXPECT_FALSE(is_mapped(range));
  EXPECT_FALSE(is_mapped(range + 8 * kMiB - 4096));
}

TEST(CpuMemory, TheTotalIsHalfALowerLimitOfAddresses) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, cpu_memory_total());
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const size_t total = cpu_memory_total();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(total, limit.rlim_cur / 2);
}

TEST(CpuMemory, TheTotalIsTwiceTheMachines) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "the address space is limited";
  EXPECT_EQ(cpu_memory_total(), 2 * static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                    static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace lockstep
