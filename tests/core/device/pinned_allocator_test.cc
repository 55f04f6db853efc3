#include "core/device/pinned_allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "kernels/host/host_memory.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/fake_runtime.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

class PinnedAllocatorTest : public ::testing::Test {
 protected:
  /// Queues a copy from the block that does not run until the gate opens.
  void queue_copy(const Block& block) {
    gate.hold(stream.get());
    copy_async(stream.get(), target.data(), block.data, target.size(), Transfer::kFromCpu);
  }

  host::HostMemory memory{size_t{1} << 30, 0};
  PinnedAllocator allocator{memory};
  std::vector<char> target = std::vector<char>(64);
  OwnedStream stream{kHost0};
  Gate gate;
};

TEST_F(PinnedAllocatorTest, FreedBlocksServeRequestsOfTheirSize) {
  const Block first = allocator.allocate(5000);
  EXPECT_EQ(first.bytes, 8192u);
  std::memset(first.data, 1, first.bytes);
  EXPECT_EQ(allocator.stats().allocated, 8192);
  allocator.free(first);
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_EQ(allocator.stats().reserved, 8192);
  const Block small = allocator.allocate(100);
  EXPECT_NE(small.data, first.data);
  const Block again = allocator.allocate(8192);
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(allocator.stats().system_calls, 2);
  EXPECT_EQ(allocator.stats().allocations, 3);
  EXPECT_EQ(allocator.stats().peak_allocated, 8192 + 4096);
  allocator.free(small);
  allocator.reset_peak();
  EXPECT_EQ(allocator.stats().peak_allocated, 8192);
  allocator.free(again);
  const Block none = allocator.allocate(0);
  EXPECT_EQ(none.data, nullptr);
  allocator.free(none);
}

TEST_F(PinnedAllocatorTest, ABlockIsNotReusedBeforeTheCopiesThatUseIt) {
  const Block block = allocator.allocate(4096);
  std::memset(block.data, 'x', 4096);
  queue_copy(block);
  allocator.record_use(block, stream.get());
  allocator.free(block);
  const Block other = allocator.allocate(4096);
  EXPECT_NE(other.data, block.data);
  std::memset(other.data, 'y', 4096);
  gate.open();
  stream.get().synchronize();
  EXPECT_EQ(target, std::vector<char>(64, 'x'));
  EXPECT_EQ(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, WorkAfterTheRecordedUseIsNotWaitedFor) {
  const Block block = allocator.allocate(4096);
  copy_async(stream.get(), target.data(), block.data, 64, Transfer::kFromCpu);
  allocator.record_use(block, stream.get());
  stream.get().synchronize();
  gate.hold(stream.get());
  allocator.free(block);
  EXPECT_EQ(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, ASecondUseOnTheSameStreamIsWaitedForLikeTheFirst) {
  const Block block = allocator.allocate(4096);
  copy_async(stream.get(), target.data(), block.data, 64, Transfer::kFromCpu);
  allocator.record_use(block, stream.get());
  stream.get().synchronize();
  queue_copy(block);
  allocator.record_use(block, stream.get());
  allocator.free(block);
  EXPECT_NE(allocator.allocate(4096).data, block.data);
  gate.open();
  stream.get().synchronize();
  EXPECT_EQ(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, ARecordedStreamIsWaitedForUpToTheFree) {
  const Block block = allocator.allocate(4096);
  allocator.record_stream(block, stream.get());
  queue_copy(block);
  allocator.free(block);
  EXPECT_NE(allocator.allocate(4096).data, block.data);
  gate.open();
  stream.get().synchronize();
  EXPECT_EQ(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, OfSeveralTheFirstThatIsUnusedIsTaken) {
  const Block busy = allocator.allocate(4096);
  const Block first = allocator.allocate(4096);
  const Block second = allocator.allocate(4096);
  queue_copy(busy);
  allocator.record_use(busy, stream.get());
  allocator.free(busy);
  allocator.free(first);
  allocator.free(second);
  EXPECT_EQ(allocator.allocate(4096).data, first.data);
  EXPECT_EQ(allocator.allocate(4096).data, second.data);
}

TEST_F(PinnedAllocatorTest, KnowsItsBlocksByAnyAddressInThem) {
  const Block block = allocator.allocate(4096);
  auto* const bytes = static_cast<std::byte*>(block.data);
  EXPECT_TRUE(allocator.owns(bytes));
  EXPECT_TRUE(allocator.owns(bytes + 4095));
  EXPECT_FALSE(allocator.owns(bytes + 4096));
  EXPECT_FALSE(allocator.owns(bytes - 1));
  EXPECT_FALSE(allocator.owns(&block));
  queue_copy(block);
  allocator.record_use(bytes + 100, stream.get());
  allocator.record_use(&block, stream.get());  // not an address of this allocator: ignored
  allocator.free(block);
  EXPECT_FALSE(allocator.owns(bytes));
  EXPECT_NE(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, EmptyCacheKeepsWhatACopyStillUses) {
  const Block busy = allocator.allocate(4096);
  const Block idle = allocator.allocate(8192);
  queue_copy(busy);
  allocator.record_use(busy, stream.get());
  allocator.free(busy);
  allocator.free(idle);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 4096);
  gate.open();
  stream.get().synchronize();
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 0);
}

TEST_F(PinnedAllocatorTest, ARefusedRequestIsTriedAgainWithoutTheCache) {
  const Block kept = allocator.allocate(8192);
  copy_async(stream.get(), target.data(), kept.data, 64, Transfer::kFromCpu);
  allocator.record_use(kept, stream.get());
  allocator.free(kept);
  const HostFaultGuard fault(HostFault::kPinned, 1);
  const Block block = allocator.allocate(4096);
  EXPECT_NE(block.data, nullptr);
  EXPECT_EQ(allocator.stats().reserved, 4096);
}

TEST_F(PinnedAllocatorTest, RunsOutOfMemoryAndGoesOn) {
  const Block block = allocator.allocate(4096);
  for (const size_t bytes : {size_t{1} << 63, ~size_t{0}, size_t{1} << 46}) {
    expect_error<OutOfMemoryError>([&] { (void)allocator.allocate(bytes); }, "pinned memory",
                                   std::to_string(bytes), "4096 bytes are on loan");
  }
  allocator.free(block);
  EXPECT_EQ(allocator.allocate(4096).data, block.data);
}

TEST_F(PinnedAllocatorTest, ForeignAndFreedBlocksAreIgnored) {
  const Block block = allocator.allocate(4096);
  int something = 0;
  allocator.free({&something, 4, nullptr, &allocator});
  allocator.free(block);
  allocator.free(block);
  EXPECT_EQ(allocator.stats().allocated, 0);
  EXPECT_NE(allocator.allocate(4096).data, allocator.allocate(4096).data);
}

TEST(PinningDevice, IsOneWhoseDriverMustPinMemoryIfThereIsOne) {
  DeviceRuntime* const gpu = set_device_runtime(DeviceType::kCUDA, nullptr);
  {
    FakeRuntime fake(size_t{1} << 20);
    EXPECT_EQ(pinning_device(), kHost0) << "any device will do, and host comes first";
    fake.needs_pinned = true;
    EXPECT_EQ(pinning_device(), FakeRuntime::kDevice);
  }
  EXPECT_EQ(pinning_device(), kHost0);
  set_device_runtime(DeviceType::kCUDA, gpu);
}

TEST(PinningDevice, IsRequiredForPinnedMemory) {
  DeviceRuntime* const gpu = set_device_runtime(DeviceType::kCUDA, nullptr);
  DeviceRuntime* const host = set_device_runtime(DeviceType::kHost, nullptr);
  expect_error<DeviceError>([] { (void)pinning_device(); }, "[pinned memory]", "host:0");
  set_device_runtime(DeviceType::kHost, host);
  set_device_runtime(DeviceType::kCUDA, gpu);
}

TEST_F(PinnedAllocatorTest, ThreadsMayUseItAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const OwnedStream mine(kHost0);
      std::vector<char> to(4096);
      for (int i = 0; i < 50; ++i) {
        const Block block = allocator.allocate(4096);
        std::memset(block.data, t, 4096);
        copy_async(mine.get(), to.data(), block.data, 4096, Transfer::kFromCpu);
        allocator.record_use(block, mine.get());
        allocator.free(block);
        mine.get().synchronize();
        wrong += to != std::vector<char>(4096, static_cast<char>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allocator.stats().allocated, 0);
}

}  // namespace
}  // namespace lockstep
