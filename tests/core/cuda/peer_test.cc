// Memory of one device used by another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/mapped_ranges.h"
#include "core/cuda/memory.h"
#include "core/device/transfer.h"
#include "tests/core/cuda/fake_gpu.h"
#include "tests/core/cuda/runtime_fixture.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr size_t kUnit = FakeDriver::kGranule;

lockstep::Device gpu_at(int index) { return {DeviceType::kCUDA, static_cast<int8_t>(index)}; }

int count_of(const std::vector<std::string>& calls, const std::string& name) {
  return static_cast<int>(std::ranges::count(calls, name));
}

/// Mapped memory of a device, as the caching allocator takes it.
class Mapped {
 public:
  Mapped(Runtime& runtime, int device, size_t granules)
      : memory_(runtime.memory(device)), granules_(granules) {
    address_ = static_cast<int*>(memory_.reserve(bytes()));
    EXPECT_TRUE(memory_.create(granules_));
    EXPECT_TRUE(memory_.map(address_, granules_));
  }
  ~Mapped() {
    memory_.unmap(address_, bytes());
    memory_.destroy(granules_);
    memory_.unreserve(address_, bytes());
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  int* data() const { return address_; }
  size_t bytes() const { return granules_.size() * kUnit; }

 private:
  DeviceMemory& memory_;
  std::vector<Granule> granules_;
  int* address_ = nullptr;
};

class CudaPeers : public CudaRuntime {
 protected:
  void copy(const Mapped& to, int to_device, const Mapped& from, int from_device) {
    runtime->copy_between(stream(0, from_device), to.data(), gpu_at(to_device), from.data(),
                          gpu_at(from_device), sizeof(int));
    runtime->synchronize(from_device);
  }
};

TEST_F(CudaPeers, ACopyWithinOneDeviceMayNotTouchAnothersMappedMemory) {
  FakeDriver strict(2);
  Runtime own([&] { return strict.load(); });
  const Mapped first(own, 0, 1);
  const Mapped second(own, 1, 1);
  expect_error<DeviceError>(
      [&] { own.copy(stream(0), second.data(), first.data(), sizeof(int), Transfer::kWithin); },
      "cuMemcpyAsync failed");
  EXPECT_THAT(strict.misuse(),
              ElementsAre("copies mapped memory to which the device has no access"));
}

TEST_F(CudaPeers, CopiesGoFromMappedMemoryToMappedMemory) {
  const Mapped first(*runtime, 0, 1);
  const Mapped second(*runtime, 1, 1);
  fake.take_calls();
  for (const int from : {0, 1}) {
    const Mapped& source = from == 0 ? first : second;
    const Mapped& target = from == 0 ? second : first;
    *source.data() = 7 + from;
    copy(target, 1 - from, source, from);
    EXPECT_EQ(*target.data(), 7 + from);
  }
  const std::vector<std::string> calls = fake.take_calls();
  EXPECT_EQ(count_of(calls, "cuMemcpyPeerAsync"), 2);
  EXPECT_THAT(calls, Not(Contains("cuMemcpyAsync")));
}

TEST_F(CudaPeers, TransfersBetweenDevicesAreSuchCopies) {
  FakeGpu gpus(64, 2);
  const Mapped first(gpus.runtime, 0, 1);
  const Mapped second(gpus.runtime, 1, 1);
  *first.data() = 5;
  transfer_bytes(second.data(), gpu_at(1), first.data(), gpu_at(0), sizeof(int));
  gpus.runtime.synchronize(1);
  EXPECT_EQ(*second.data(), 5) << "the target's stream waits for the source's";
  EXPECT_THAT(gpus.fake.misuse(), IsEmpty());
}

TEST_F(CudaPeers, TheFirstCopyOpensTheMemoryOfBothToEachOther) {
  const Mapped first(*runtime, 0, 2);
  const Mapped second(*runtime, 1, 3);
  fake.take_calls();
  copy(second, 1, first, 0);
  const std::vector<std::string> calls = fake.take_calls();
  EXPECT_EQ(count_of(calls, "cuMemSetAccess"), 2);
  EXPECT_EQ(count_of(calls, "cuCtxEnablePeerAccess"), 2);
  // A stream of each device may now use the other's memory by itself.
  for (const int device : {0, 1}) {
    runtime->copy(stream(0, device), second.data(), first.data(), 2 * kUnit, Transfer::kWithin);
    runtime->copy(stream(0, device), first.data(), second.data(), 2 * kUnit, Transfer::kWithin);
    runtime->synchronize(device);
  }
  fake.take_calls();
  copy(first, 0, second, 1);
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuMemcpyPeerAsync", "cuCtxSynchronize"));
}

TEST_F(CudaPeers, MemoryMappedLaterIsOpenToo) {
  {
    const Mapped first(*runtime, 0, 1);
    const Mapped second(*runtime, 1, 1);
    copy(second, 1, first, 0);
  }
  const Mapped first(*runtime, 0, 2);
  const Mapped second(*runtime, 1, 1);
  runtime->copy(stream(0, 1), second.data(), first.data() + kUnit / sizeof(int), kUnit,
                Transfer::kWithin);
  runtime->synchronize(1);
}

TEST_F(CudaPeers, MemoryThatIsNoLongerMappedIsLeftAlone) {
  DeviceMemory& memory = runtime->memory(0);
  auto* const range = static_cast<std::byte*>(memory.reserve(4 * kUnit));
  std::vector<Granule> granules(4);
  ASSERT_TRUE(memory.create(granules));
  ASSERT_TRUE(memory.map(range, granules));
  memory.unmap(range + kUnit, kUnit);
  fake.take_calls();
  runtime->open_peer(1, 0);
  EXPECT_EQ(count_of(fake.take_calls(), "cuMemSetAccess"), 2) << "on both sides of the hole";
  memory.unmap(range, kUnit);
  memory.unmap(range + 2 * kUnit, 2 * kUnit);
  memory.destroy(granules);
  memory.unreserve(range, 4 * kUnit);
}

TEST_F(CudaPeers, DevicesThatDoNotReachEachOtherCopyAllTheSame) {
  fake.disable_peers();
  const Mapped first(*runtime, 0, 1);
  const Mapped second(*runtime, 1, 1);
  EXPECT_FALSE(runtime->reaches_peer(0, 1));
  fake.take_calls();
  *first.data() = 3;
  copy(second, 1, first, 0);
  EXPECT_EQ(*second.data(), 3);
  EXPECT_THAT(fake.take_calls(), Not(Contains("cuMemSetAccess")));
}

TEST_F(CudaPeers, ARefusedAccessMakesCopiesSlowerAndIsNotTriedAgain) {
  const Mapped first(*runtime, 0, 1);
  const Mapped second(*runtime, 1, 1);
  fake.fail("cuCtxEnablePeerAccess", CUDA_ERROR_TOO_MANY_PEERS);
  fake.take_calls();
  *first.data() = 3;
  copy(second, 1, first, 0);
  EXPECT_EQ(*second.data(), 3);
  EXPECT_EQ(count_of(fake.take_calls(), "cuMemSetAccess"), 1) << "the other way is open";
  copy(second, 1, first, 0);
  EXPECT_THAT(fake.take_calls(), Not(Contains("cuCtxEnablePeerAccess")));
}

TEST_F(CudaPeers, ACopyBetweenDevicesIsOfTheirOwnMemory) {
  FakeDriver strict(2);
  Runtime own([&] { return strict.load(); });
  const Mapped first(own, 0, 1);
  const Mapped second(own, 1, 1);
  expect_error<DeviceError>(
      [&] {
        own.copy_between(stream(0), second.data(), gpu_at(0), first.data(), gpu_at(1), sizeof(int));
      },
      "cuMemcpyPeerAsync failed");
  EXPECT_THAT(strict.misuse(), ElementsAre("copies between devices what is not their memory"));
}

RC_GTEST_PROP(CudaMappedRanges, HoldsWhatWasAddedAndNotRemoved, ()) {
  MappedRanges ranges;
  std::set<MappedRanges::Address> expected;
  for (int i = 0; i < 30; ++i) {
    const auto begin = *rc::gen::inRange<MappedRanges::Address>(0, 40);
    const auto end = begin + *rc::gen::inRange<MappedRanges::Address>(1, 10);
    const bool is_free = expected.lower_bound(begin) == expected.lower_bound(end);
    if (is_free && *rc::gen::arbitrary<bool>()) {
      ranges.add(begin, end);
      for (auto at = begin; at < end; ++at) expected.insert(at);
    } else {
      ranges.remove(begin, end);
      for (auto at = begin; at < end; ++at) expected.erase(at);
    }
    std::set<MappedRanges::Address> held;
    for (const auto& [first, last] : ranges) {
      RC_ASSERT(first < last);
      for (auto at = first; at < last; ++at) RC_ASSERT(held.insert(at).second);
    }
    RC_ASSERT(held == expected);
  }
}

}  // namespace
}  // namespace lockstep::cuda
