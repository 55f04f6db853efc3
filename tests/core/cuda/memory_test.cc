#include "core/cuda/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/emulation/fake_driver.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kGranule = FakeDriver::kGranule;

/// The memory of device 0 of a fake driver.
struct FakeDevice {
  explicit FakeDevice(size_t bytes = 8 * kGranule) : fake(1, bytes) {}

  std::byte* reserve(size_t granules) {
    return static_cast<std::byte*>(memory.reserve(granules * kGranule));
  }
  std::vector<Granule> create(size_t count) {
    std::vector<Granule> granules(count);
    EXPECT_TRUE(memory.create(granules));
    return granules;
  }

  FakeDriver fake;
  Driver driver = fake.functions();
  Context context{driver, 0};
  Memory memory{context};
};

TEST(CudaMemory, AsksTheDriverHowMuchThereIs) {
  FakeDevice device;
  EXPECT_EQ(device.memory.total(), 8 * kGranule);
  EXPECT_EQ(device.memory.granularity(), kGranule);
  EXPECT_EQ(device.memory.available(), 8 * kGranule);
  device.create(3);
  EXPECT_EQ(device.memory.available(), 5 * kGranule);
}

TEST(CudaMemory, MapsInTheDriversOrder) {
  FakeDevice device;
  (void)device.context.get();
  device.fake.take_calls();
  std::byte* const range = device.reserve(4);
  const std::vector<Granule> granules = device.create(2);
  ASSERT_TRUE(device.memory.map(range + kGranule, granules));
  EXPECT_THAT(device.fake.take_calls(),
              ElementsAre("cuMemAddressReserve", "cuMemCreate", "cuMemCreate", "cuMemMap",
                          "cuMemMap", "cuMemSetAccess"));

  std::memset(range + kGranule, 7, 2 * kGranule);
  device.memory.unmap(range + kGranule, 2 * kGranule);
  device.memory.destroy(granules);
  device.memory.unreserve(range, 4 * kGranule);
  EXPECT_THAT(device.fake.take_calls(),
              ElementsAre("cuMemUnmap", "cuMemRelease", "cuMemRelease", "cuMemAddressFree"));
  EXPECT_EQ(device.fake.held(), "1 contexts");
  EXPECT_THAT(device.fake.misuse(), IsEmpty());
}

TEST(CudaMemory, AGranuleKeepsItsContentsFromOneAddressToAnother) {
  FakeDevice device;
  std::byte* const range = device.reserve(4);
  const std::vector<Granule> granules = device.create(2);
  ASSERT_TRUE(device.memory.map(range, granules));
  range[5] = std::byte{1};
  range[kGranule + 5] = std::byte{2};
  device.memory.unmap(range, 2 * kGranule);
  const std::vector<Granule> turned{granules[1], granules[0]};
  ASSERT_TRUE(device.memory.map(range + 2 * kGranule, turned));
  EXPECT_EQ(range[2 * kGranule + 5], std::byte{2});
  EXPECT_EQ(range[3 * kGranule + 5], std::byte{1});
  device.memory.unmap(range + 2 * kGranule, 2 * kGranule);
  device.memory.destroy(granules);
  device.memory.unreserve(range, 4 * kGranule);
  EXPECT_EQ(device.fake.held(), "1 contexts");
}

TEST(CudaMemory, WantOfMemoryIsAnAnswerAndMakesNothing) {
  FakeDevice device(2 * kGranule);
  std::vector<Granule> granules(3, 99);
  EXPECT_FALSE(device.memory.create(granules));
  EXPECT_EQ(device.fake.held(), "1 contexts");
  EXPECT_THAT(granules, ElementsAre(0, 0, 99));
  EXPECT_EQ(device.memory.allocate(3 * kGranule), nullptr);
  EXPECT_EQ(device.memory.available(), 2 * kGranule) << "nothing to report";
}

TEST(CudaMemory, GranulesAreLargerWhereMemoryIsAmple) {
  constexpr size_t kGiB = size_t{1} << 30;
  using Sizes = std::pair<size_t, size_t>;
  for (const auto& [total, granule] :
       {Sizes(4, 2), Sizes(24, 4), Sizes(80, 16), Sizes(140, 32), Sizes(1000, 32)}) {
    FakeDevice device(total * kGiB);
    EXPECT_EQ(device.memory.granularity(), granule << 20) << total << " GiB";
  }
  FakeDevice device(80 * kGiB);
  const size_t granule = device.memory.granularity();
  auto* const range = static_cast<std::byte*>(device.memory.reserve(4 * granule));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(range) % granule, 0u);
  const std::vector<Granule> granules = device.create(2);
  EXPECT_EQ(device.fake.used(), 2 * granule);
  ASSERT_TRUE(device.memory.map(range, granules));
  range[granule - 1] = std::byte{1};
  range[2 * granule - 1] = std::byte{2};
  device.memory.unmap(range, granule);
  ASSERT_TRUE(device.memory.map(range + 3 * granule, std::span(granules).first(1)));
  EXPECT_EQ(range[4 * granule - 1], std::byte{1});
  EXPECT_EQ(range[2 * granule - 1], std::byte{2});
  device.memory.unmap(range + granule, granule);
  device.memory.unmap(range + 3 * granule, granule);
  device.memory.destroy(granules);
  device.memory.unreserve(range, 4 * granule);
  EXPECT_EQ(device.fake.held(), "1 contexts");
  EXPECT_THAT(device.fake.misuse(), IsEmpty());
}

TEST(CudaMemory, AGranuleCanBeMappedTwice) {
  FakeDevice device;
  std::byte* const range = device.reserve(2);
  const std::vector<Granule> granules = device.create(1);
  ASSERT_TRUE(device.memory.maps_twice());
  ASSERT_TRUE(device.memory.map(range, granules));
  ASSERT_TRUE(device.memory.map(range + kGranule, granules));
  range[7] = std::byte{3};
  EXPECT_EQ(range[kGranule + 7], std::byte{3});
  device.memory.unmap(range, kGranule);
  EXPECT_EQ(range[kGranule + 7], std::byte{3});
  device.memory.unmap(range + kGranule, kGranule);
  device.memory.destroy(granules);
  device.memory.unreserve(range, 2 * kGranule);
  EXPECT_THAT(device.fake.misuse(), IsEmpty());
}

// What network cards and other processes may do with granules.

/// Whether a granule made now can be exported, and used by network cards.
std::pair<bool, bool> made_as(FakeDevice& device) {
  const std::vector<Granule> granules = device.create(1);
  const CUmemAllocationProp properties = device.fake.properties_of(granules[0]);
  device.memory.destroy(granules);
  const std::pair<bool, bool> made{
      properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
      properties.allocFlags.gpuDirectRDMACapable == 1};
  EXPECT_EQ(made, std::pair(device.memory.is_exportable(), device.memory.is_rdma_capable()));
  return made;
}

TEST(CudaMemory, GranulesAreForNetworkCardsAndOtherProcessesWhereTheDeviceSupportsIt) {
  for (const bool exportable : {false, true}) {
    for (const bool rdma : {false, true}) {
      FakeDriver fake;
      fake.set_exportable(exportable);
      fake.set_rdma_capable(rdma);
      const Driver driver = fake.functions();
      Context context(driver, 0);
      Memory memory(context);
      std::vector<Granule> granules(1);
      ASSERT_TRUE(memory.create(granules));
      const CUmemAllocationProp properties = fake.properties_of(granules[0]);
      EXPECT_EQ(properties.requestedHandleTypes,
                exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE);
      EXPECT_EQ(properties.allocFlags.gpuDirectRDMACapable, rdma ? 1 : 0);
      EXPECT_THAT(fake.misuse(), IsEmpty());
    }
  }
}

TEST(CudaMemory, WhatTheDriverRefusesOfThatIsLeftOutFromThenOn) {
  for (const CUresult refusal :
       {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_INVALID_VALUE}) {
    FakeDevice device;
    EXPECT_EQ(made_as(device), std::pair(true, true));
    device.fake.refuse_rdma(refusal);
    EXPECT_EQ(made_as(device), std::pair(true, false));
    device.fake.refuse_exportable(refusal);
    EXPECT_EQ(made_as(device), std::pair(false, false));
    device.fake.take_calls();
    device.create(1);
    EXPECT_THAT(device.fake.take_calls(), ElementsAre("cuMemCreate"));
    EXPECT_EQ(device.memory.available(), 7 * kGranule) << "nothing to report";
  }
}

TEST(CudaMemory, WantOfMemoryLeavesNothingOut) {
  FakeDevice device(2 * kGranule);
  std::vector<Granule> granules(3);
  EXPECT_FALSE(device.memory.create(granules));
  device.fake.fail("cuMemCreate", CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_FALSE(device.memory.create(granules));
  EXPECT_EQ(made_as(device), std::pair(true, true));
}

TEST(CudaMemory, AFailureInTheMiddleIsTakenBackInReverse) {
  FakeDevice device;
  (void)device.context.get();
  std::byte* const range = device.reserve(3);
  const std::vector<Granule> granules = device.create(3);
  device.fake.take_calls();
  device.fake.fail("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY, 2);
  EXPECT_FALSE(device.memory.map(range, granules));
  EXPECT_THAT(device.fake.take_calls(),
              ElementsAre("cuMemMap", "cuMemMap", "cuMemMap", "cuMemUnmap"));
  device.fake.fail("cuMemSetAccess", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(device.memory.map(range, granules));
  EXPECT_EQ(device.fake.held(), "1 contexts, 3 granules, 1 ranges");
  ASSERT_TRUE(device.memory.map(range, granules)) << "the range can be used again";
  EXPECT_THAT(device.fake.misuse(), IsEmpty());
}

TEST(CudaMemory, AFailureOtherThanWantOfMemoryIsReportedByTheNextQuestion) {
  FakeDevice device;
  std::vector<Granule> granules(2);
  device.fake.fail("cuMemCreate", CUDA_ERROR_SYSTEM_NOT_READY, 1);
  EXPECT_FALSE(device.memory.create(granules));
  expect_error<DeviceError>([&] { (void)device.memory.available(); },
                            "[cuda] cuMemCreate failed: CUDA_ERROR_SYSTEM_NOT_READY");
  EXPECT_EQ(device.memory.available(), 8 * kGranule) << "once";
}

TEST(CudaMemory, ADamagedContextRefusesEverythingAndSaysSo) {
  FakeDevice device;
  void* const block = device.memory.allocate(4096);
  ASSERT_NE(block, nullptr);
  device.fake.poison(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(device.memory.allocate(4096), nullptr);
  EXPECT_EQ(device.memory.allocate_pinned(4096), nullptr);
  device.memory.release(block, 4096);
  for (int i = 0; i < 2; ++i) {
    expect_error<DeviceError>([&] { (void)device.memory.available(); },
                              "CUDA_ERROR_ILLEGAL_ADDRESS", "An earlier kernel has failed");
  }
}

TEST(CudaMemory, WithoutAContextThereIsNoMemory) {
  FakeDevice device;
  device.fake.fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(device.memory.allocate(4096), nullptr);
  expect_error<DeviceError>([&] { (void)device.memory.available(); },
                            "[cuda] cuDevicePrimaryCtxRetain failed: CUDA_ERROR_OUT_OF_MEMORY");
}

TEST(CudaMemory, PlainAllocationsAndPinnedOnesGoBackWhereTheyCameFrom) {
  FakeDevice device;
  void* const plain = device.memory.allocate(1000);
  void* const pinned = device.memory.allocate_pinned(1000);
  ASSERT_NE(plain, nullptr);
  ASSERT_NE(pinned, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plain) % 512, 0u);
  std::memset(pinned, 1, 1000);
  EXPECT_EQ(device.fake.held(), "1 contexts, 1 allocations, 1 pinned");
  device.memory.release(plain, 1000);
  device.memory.release_pinned(pinned, 1000);
  EXPECT_EQ(device.fake.held(), "1 contexts");
  EXPECT_EQ(device.memory.allocate(0), nullptr);
  EXPECT_EQ(device.memory.allocate_pinned(0), nullptr);
  device.memory.release(nullptr, 0);
  device.memory.release_pinned(nullptr, 0);
  EXPECT_THAT(device.fake.misuse(), IsEmpty());
}

TEST(CudaMemory, MemoryThatIsNotAlignedIsRefused) {
  FakeDevice device;
  device.fake.set_pointer_offset(256);
  EXPECT_EQ(device.memory.allocate(1000), nullptr);
  EXPECT_EQ(device.fake.held(), "1 contexts");
  expect_error<DeviceError>([&] { (void)device.memory.available(); }, "aligned to 512");
}

TEST(CudaMemory, ADeviceWithoutVirtualMemoryHasNoGranules) {
  FakeDriver fake;
  fake.disable_granules();
  const Driver driver = fake.functions();
  Context context(driver, 0);
  Memory memory(context);
  EXPECT_EQ(memory.granularity(), 0u);
  EXPECT_NE(memory.allocate(4096), nullptr);
}

/// Whichever driver call fails, the operation that needed it changes nothing, and everything can be
/// released at the end.
RC_GTEST_PROP(CudaMemory, NothingIsLostWhereverTheDriverFails, ()) {
  FakeDevice device(12 * kGranule);
  constexpr size_t kSlots = 10;
  const size_t bytes = kSlots * kGranule;
  auto* const range = static_cast<std::byte*>(device.memory.reserve(bytes));
  std::vector<Granule> slots(kSlots);  // 0: nothing mapped there
  std::vector<Granule> spare;
  const int operations = *rc::gen::inRange(1, 30);
  for (int i = 0; i < operations; ++i) {
    const bool fails = *rc::gen::arbitrary<bool>();
    if (fails) {
      device.fake.fail_taking(*rc::gen::inRange(0, 6), *rc::gen::element(CUDA_ERROR_OUT_OF_MEMORY,
                                                                         CUDA_ERROR_INVALID_VALUE));
    } else {
      device.fake.fail_taking(-1, CUDA_SUCCESS);
    }
    const std::string before = device.fake.held();
    const size_t count = *rc::gen::inRange<size_t>(1, 5);
    switch (*rc::gen::inRange(0, 4)) {
      case 0: {
        std::vector<Granule> made(count);
        if (device.memory.create(made)) {
          spare.insert(spare.end(), made.begin(), made.end());
        } else {
          RC_ASSERT(device.fake.held() == before);
        }
        break;
      }
      case 1: {  // maps the last spare granules at a free place
        const std::vector<Granule> hole(std::min(count, spare.size()));
        const auto at = std::search(slots.begin(), slots.end(), hole.begin(), hole.end());
        if (hole.empty() || at == slots.end()) break;
        const std::span<const Granule> some = std::span(spare).last(hole.size());
        if (device.memory.map(range + (at - slots.begin()) * kGranule, some)) {
          std::ranges::copy(some, at);
          spare.resize(spare.size() - hole.size());
        } else {
          RC_ASSERT(device.fake.held() == before);
        }
        break;
      }
      case 2: {  // unmaps a run
        const auto at = std::ranges::find_if(slots, [](Granule granule) { return granule != 0; });
        const auto end = std::find(at, slots.end(), 0);
        if (at == slots.end()) break;
        device.memory.unmap(range + (at - slots.begin()) * kGranule,
                            static_cast<size_t>(end - at) * kGranule);
        spare.insert(spare.end(), at, end);
        std::fill(at, end, 0);
        break;
      }
      default: {
        const size_t some = std::min(count, spare.size());
        device.memory.destroy(std::span(spare).last(some));
        spare.resize(spare.size() - some);
      }
    }
    RC_ASSERT(device.fake.used() ==
              (spare.size() + kSlots - static_cast<size_t>(std::ranges::count(slots, 0))) *
                  kGranule);
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (slots[slot] != 0) range[slot * kGranule] = std::byte{1};  // readable and writable
    }
  }
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (slots[slot] == 0) continue;
    device.memory.unmap(range + slot * kGranule, kGranule);
    device.memory.destroy(std::span(slots).subspan(slot, 1));
  }
  device.memory.destroy(spare);
  device.memory.unreserve(range, bytes);
  RC_ASSERT(device.fake.misuse().empty());
  RC_ASSERT(device.fake.held() == "1 contexts");
}

}  // namespace
}  // namespace lockstep::cuda
