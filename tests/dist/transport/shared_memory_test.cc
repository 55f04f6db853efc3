#include "dist/transport/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "tests/core/base/child_process.h"

namespace lockstep::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <class Type, class Action>
std::string text_of(Action action) {
  try {
    action();
  } catch (const Type& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SharedMemory, WhatAnotherProcessWritesIsSeen) {
  const SharedMemory memory = SharedMemory::create(10'000);
  ASSERT_EQ(memory.size(), 10'000u);
  EXPECT_EQ(memory.data()[9'999], std::byte{0});
  const int maker = getpid();
  const int status = status_of_child([&] {
    const SharedMemory same = SharedMemory::open(maker, memory.fd(), 10'000);
    if (same.data() == memory.data()) return false;
    same.data()[9'999] = std::byte{7};
    return true;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.data()[9'999], std::byte{7});
}

size_t allocated_bytes(const SharedMemory& memory) {
  struct stat status {};
  EXPECT_EQ(fstat(memory.fd(), &status), 0);
  constexpr size_t kBlock = 512;  // unit of st_blocks
  return static_cast<size_t>(status.st_blocks) * kBlock;
}

TEST(SharedMemory, PartsThatAreAllocatedLaterTakeNoMemoryBefore) {
  constexpr size_t kPart = 64 << 10;
  EXPECT_EQ(allocated_bytes(SharedMemory::create(4 * kPart)), 4 * kPart);
  const SharedMemory memory = SharedMemory::create(4 * kPart, kPart);
  ASSERT_EQ(memory.size(), 4 * kPart);
  if (allocated_bytes(memory) == 4 * kPart) GTEST_SKIP() << "Linux is older than 5.14";
  EXPECT_EQ(allocated_bytes(memory), kPart);
  const SharedMemory same = SharedMemory::open(getpid(), memory.fd(), 4 * kPart);
  same.allocate(2 * kPart, kPart);
  EXPECT_EQ(allocated_bytes(memory), 2 * kPart);
  same.data()[2 * kPart] = std::byte{3};
  memory.allocate(2 * kPart, kPart);
  EXPECT_EQ(allocated_bytes(memory), 2 * kPart);
  EXPECT_EQ(memory.data()[2 * kPart], std::byte{3}) << "allocated twice, and kept";
  memory.allocate(kPart, 1);
  EXPECT_EQ(allocated_bytes(memory), 2 * kPart + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(SharedMemory, LivesAsLongAsSomebodyHoldsIt) {
  SharedMemory memory = SharedMemory::create(100);
  const SharedMemory same = SharedMemory::open(getpid(), memory.fd(), 100);
  memory.data()[0] = std::byte{5};
  memory = SharedMemory();
  EXPECT_EQ(same.data()[0], std::byte{5});
}

TEST(SharedMemory, CannotBeOpenedOnceItsDescriptorIsClosed) {
  SharedMemory memory = SharedMemory::create(100);
  const int fd = memory.fd();
  memory.close_fd();
  EXPECT_THAT(text_of<BackendError>([&] { (void)SharedMemory::open(getpid(), fd, 100); }),
              HasSubstr("LOCKSTEP_SHM=0"));
}

TEST(SharedMemory, OfAnotherSizeIsRefused) {
  const SharedMemory memory = SharedMemory::create(100);
  EXPECT_THAT(text_of<BackendError>([&] { (void)SharedMemory::open(getpid(), memory.fd(), 101); }),
              HasSubstr("not the memory of 101 bytes"));
}

TEST(SharedMemory, MoreThanThereIsIsAnErrorAtOnce) {
  const int status = status_of_child([] {
    // If the memory were allocated after all, the OOM killer would choose this process first.
    std::ofstream("/proc/self/oom_score_adj") << 1000;
    const auto ask = [] { (void)SharedMemory::create(size_t{1} << 40); };
    return text_of<OutOfMemoryError>(ask).find("at most half") != std::string::npos;
  });
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, MoreThanAnAddressCanReachIsAnError) {
  const auto ask = [] { (void)SharedMemory::create(size_t{1} << 60, 4096); };
  EXPECT_THAT(text_of<OutOfMemoryError>(ask),
              AllOf(HasSubstr("1152921504606846976 bytes cannot be mapped: "),
                    HasSubstr("ulimit -v"), HasSubstr("LOCKSTEP_SHM=0")));
}

TEST(SharedMemory, APartThatCannotBeAllocatedIsAnErrorAndNoSignal) {
  constexpr size_t kPart = 64 << 10;
  const SharedMemory memory = SharedMemory::create(4 * kPart, kPart);
  if (allocated_bytes(memory) == 4 * kPart) GTEST_SKIP() << "Linux is older than 5.14";
  ASSERT_EQ(ftruncate(memory.fd(), kPart), 0);  // no page can be had behind a file's end
  EXPECT_THAT(text_of<OutOfMemoryError>([&] { memory.allocate(2 * kPart, kPart); }),
              AllOf(HasSubstr("65536 bytes for messages within this machine: "),
                    HasSubstr("Free memory"), HasSubstr("LOCKSTEP_SHM=0 to do without")));
}

TEST(SharedMemory, BeyondTheLimitForFilesItIsAnErrorAndNoSignal) {
  const int status = status_of_child([] {
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const auto ask = [] { (void)SharedMemory::create(8192); };
    return text_of<OutOfMemoryError>(ask).find("ulimit -f") != std::string::npos;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::dist
