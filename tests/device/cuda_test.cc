// Tests that need a real GPU. Without one each is skipped with the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/availability.h"
#include "core/cuda/pattern.h"
#include "core/device/device_runtime.h"
#include "core/tensor/event.h"
#include "tests/core/expect_error.h"
#include "tests/device/block_stress.h"

namespace lockstep::cuda {
namespace {

constexpr Device kGpu{DeviceType::kCUDA, 0};
constexpr size_t kMiB = size_t{1} << 20;

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = availability().reason;
    if (!reason.empty()) GTEST_SKIP() << "no GPU: " << reason;
  }

  DeviceMemory& memory() { return device_runtime(DeviceType::kCUDA)->memory(0); }
};

/// An array in pinned memory.
class Pinned {
 public:
  Pinned(DeviceMemory& memory, size_t words)
      : memory_(memory),
        bytes_(words * sizeof(uint64_t)),
        data_(static_cast<uint64_t*>(memory.allocate_pinned(bytes_))) {
    if (data_ == nullptr) throw OutOfMemoryError("[test] no pinned memory");
    std::memset(data_, 0, bytes_);
  }
  ~Pinned() { memory_.release_pinned(data_, bytes_); }
  uint64_t* data() { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  DeviceMemory& memory_;
  size_t bytes_;
  uint64_t* data_;
};

TEST(CudaWithoutDevice, ErrorsSayWhy) {
  const std::string reason = availability().reason;
  if (reason.empty()) GTEST_SKIP() << "there is a GPU: " << availability().devices.front();
  EXPECT_EQ(device_count(DeviceType::kCUDA), 0);
  expect_error<DeviceError>([] { synchronize(kGpu); }, "cuda:0", reason);
  expect_error<DeviceError>([] { (void)get_stream_from_pool(kGpu); }, reason);
  expect_error<DeviceError>([] { OwnedStream{kGpu}; }, reason);
}

TEST_F(CudaDevice, CopiesAndKernelsOfOneStreamRunInOrder) {
  const size_t words = 4 * kMiB / 8;
  const Stream stream = get_stream_from_pool(kGpu);
  Pinned host(memory(), words);
  auto* const on_device = static_cast<uint64_t*>(memory().allocate(4 * kMiB));
  auto* const counter = static_cast<uint64_t*>(memory().allocate(512));
  ASSERT_NE(on_device, nullptr);
  ASSERT_NE(counter, nullptr);
  uint64_t wrong = 0;
  copy_async(stream, counter, &wrong, sizeof wrong, Transfer::kFromCpu);
  stream.synchronize();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fill_pattern(stream, on_device, 4 * kMiB, seed);
    copy_async(stream, host.data(), on_device, host.bytes(), Transfer::kToCpu);
    fill_pattern(stream, on_device, 4 * kMiB, seed + 1000);
    copy_async(stream, on_device, host.data(), host.bytes(), Transfer::kFromCpu);
    count_wrong(stream, on_device, 4 * kMiB, seed, counter);
  }
  copy_async(stream, &wrong, counter, sizeof wrong, Transfer::kToCpu);
  stream.synchronize();
  EXPECT_EQ(wrong, 0u);
  count_wrong(stream, on_device, 4 * kMiB, 77, counter);
  copy_async(stream, &wrong, counter, sizeof wrong, Transfer::kToCpu);
  stream.synchronize();
  EXPECT_EQ(wrong, words) << "a wrong seed must be noticed";
  memory().release(on_device, 4 * kMiB);
  memory().release(counter, 512);
}

TEST_F(CudaDevice, StreamsWaitForEachOthersEvents) {
  const Stream first = get_stream_from_pool(kGpu);
  const Stream second = get_stream_from_pool(kGpu, -1);
  // Copies through device memory: the driver would do a copy within the CPU at once, on the host.
  Pinned source(memory(), 1);
  Pinned flag(memory(), 1);
  void* const between = memory().allocate(512);
  ASSERT_NE(between, nullptr);
  *source.data() = 1;
  std::atomic<bool> release = false;
  Event reached;
  first.add_callback([&] { release.wait(false); });
  copy_async(first, between, source.data(), sizeof(uint64_t), Transfer::kFromCpu);
  copy_async(first, flag.data(), between, sizeof(uint64_t), Transfer::kToCpu);
  reached.record(first);
  second.wait_event(reached);
  std::atomic<uint64_t> seen = 99;
  second.add_callback([&] { seen = *flag.data(); });
  EXPECT_FALSE(reached.query());
  EXPECT_FALSE(second.query());
  release = true;
  release.notify_all();
  second.synchronize();
  EXPECT_EQ(seen, 1u);
  EXPECT_TRUE(reached.query());
  memory().release(between, 512);
}

TEST_F(CudaDevice, EventsTellTheTimeBetweenThem) {
  const Stream stream = get_stream_from_pool(kGpu);
  auto* const block = memory().allocate(256 * kMiB);
  ASSERT_NE(block, nullptr);
  Event start(true);
  Event end(true);
  fill_pattern(stream, block, 256 * kMiB, 0);  // loads the module
  start.record(stream);
  fill_pattern(stream, block, 256 * kMiB, 1);
  end.record(stream);
  end.synchronize();
  const double milliseconds = start.elapsed_ms(end);
  EXPECT_GT(milliseconds, 0.02) << "more than 12 TB/s";
  memory().release(block, 256 * kMiB);
}

TEST_F(CudaDevice, PrioritiesAreTheDrivers) {
  EXPECT_EQ(get_stream_from_pool(kGpu).priority(), 0);
  EXPECT_LT(get_stream_from_pool(kGpu, -1).priority(), 0);
  const OwnedStream own(kGpu, -1);
  EXPECT_LT(own.get().priority(), 0);
}

TEST_F(CudaDevice, ADestroyedStreamIsAnError) {
  Stream copy;
  {
    const OwnedStream own(kGpu);
    copy = own.get();
    copy.synchronize();
  }
  expect_error<DeviceError>([&] { copy.synchronize(); }, "was destroyed");
}

TEST_F(CudaDevice, GranulesKeepTheirContentsWhenTheyMove) {
  const size_t granule = memory().granularity();
  if (granule == 0) GTEST_SKIP() << "this GPU has no virtual memory management";
  auto* const range = static_cast<std::byte*>(memory().reserve(8 * granule));
  ASSERT_NE(range, nullptr);
  std::vector<Granule> granules(4);
  ASSERT_TRUE(memory().create(granules));
  ASSERT_TRUE(memory().map(range, granules));
  const Stream stream = default_stream(kGpu);
  auto* const counter = static_cast<uint64_t*>(memory().allocate(512));
  uint64_t wrong = 0;
  copy_async(stream, counter, &wrong, sizeof wrong, Transfer::kFromCpu);
  for (uint64_t i = 0; i < 4; ++i) fill_pattern(stream, range + i * granule, granule, i);
  stream.synchronize();
  memory().unmap(range, 4 * granule);
  const std::vector<Granule> turned{granules[3], granules[1], granules[0], granules[2]};
  ASSERT_TRUE(memory().map(range + 4 * granule, turned));
  const std::vector<uint64_t> owner{3, 1, 0, 2};
  for (size_t i = 0; i < 4; ++i) {
    count_wrong(stream, range + (4 + i) * granule, granule, owner[i], counter);
  }
  copy_async(stream, &wrong, counter, sizeof wrong, Transfer::kToCpu);
  stream.synchronize();
  EXPECT_EQ(wrong, 0u);
  memory().unmap(range + 4 * granule, 4 * granule);
  memory().destroy(granules);
  memory().unreserve(range, 8 * granule);
  memory().release(counter, 512);
}

TEST_F(CudaDevice, MoreThanThereIsIsRefusedAndTheDeviceGoesOn) {
  EXPECT_EQ(memory().allocate(memory().total() + (size_t{1} << 40)), nullptr);
  void* const block = memory().allocate(kMiB);
  ASSERT_NE(block, nullptr);
  fill_pattern(default_stream(kGpu), block, kMiB, 1);
  default_stream(kGpu).synchronize();
  memory().release(block, kMiB);
}

TEST_F(CudaDevice, BlocksHoldWhatTheirOwnersWroteOnAllStreams) {
  for (const bool expandable : {true, false}) {
    CachingAllocator allocator(kGpu, memory(), {.expandable_segments = expandable});
    {
      BlockStress stress(allocator, 1, 32 * kMiB);
      for (int i = 0; i < 5000; ++i) stress.step();
      EXPECT_EQ(stress.wrong(), 0u) << (expandable ? "expandable" : "plain");
    }
    allocator.empty_cache();
    EXPECT_EQ(allocator.stats().reserved, 0);
  }
}

TEST_F(CudaDevice, ThreadsShareTheDevice) {
  CachingAllocator allocator(kGpu, memory());
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&allocator, seed] {
      BlockStress stress(allocator, seed, 4 * kMiB);
      for (int i = 0; i < 1000; ++i) stress.step();
      EXPECT_EQ(stress.wrong(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockstep::cuda
