// Which allocator a device has, and what it is told.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "core/memory/caching_allocator.h"
#include "core/memory/units.h"
#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"

namespace lockstep {
namespace {

/// Serves no memory; notes the streams that are destroyed.
class NotedAllocator final : public Allocator {
 public:
  Block allocate(size_t, const Stream&) override { return {nullptr, 0, nullptr, this}; }
  void free(const Block&) noexcept override {}
  void record_stream(const Block&, const Stream& stream) override { recorded.push_back(stream); }
  void stream_destroyed(const Stream& stream) noexcept override { destroyed.push_back(stream); }
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}

  std::vector<Stream> recorded;
  std::vector<Stream> destroyed;
};

/// Sets the allocator of a device type until the end of the scope.
class AllocatorOfTypeGuard {
 public:
  AllocatorOfTypeGuard(DeviceType type, Allocator* allocator)
      : type_(type), before_(set_allocator(type, allocator)) {}
  ~AllocatorOfTypeGuard() { set_allocator(type_, before_); }
  AllocatorOfTypeGuard(const AllocatorOfTypeGuard&) = delete;
  AllocatorOfTypeGuard& operator=(const AllocatorOfTypeGuard&) = delete;
  Allocator* before() const { return before_; }

 private:
  DeviceType type_;
  Allocator* before_;
};

TEST(AllocatorOfDevice, IsTheCachingOneUnlessTheProgramSetsAnother) {
  NotedAllocator own;
  {
    const AllocatorOfTypeGuard guard(DeviceType::kMeta, &own);
    EXPECT_EQ(guard.before(), nullptr);
    EXPECT_EQ(&allocator(kMeta), &own);
    EXPECT_NE(&allocator(kCPU), &own) << "of its type of device alone";
    expect_error<DeviceError>([&] { caching_allocator(kMeta); },
                              "[allocator] the memory of meta comes from a custom allocator "
                              "(set_allocator): expected the caching allocator.");
    EXPECT_EQ(set_allocator(DeviceType::kMeta, &own), &own);
  }
  CachingAllocator& caching = caching_allocator(kMeta);
  EXPECT_EQ(&allocator(kMeta), &caching);
  EXPECT_EQ(&caching_allocator(kMeta), &caching) << "made once";
  EXPECT_EQ(caching.device(), kMeta);
  EXPECT_EQ(caching_allocator(kCPU).device(), kCPU);
}

TEST(AllocatorOfDevice, DevicesBeyondTheLastDoNotExist) {
  for (const Device device : {Device{DeviceType::kMeta, 1},
                              Device{DeviceType::kHost, static_cast<int8_t>(kMaxDevices)}}) {
    expect_error<DeviceError>([&] { allocator(device); },
                              "[allocator] there is no device " + to_string(device) + ".");
  }
  const Device last{DeviceType::kHost, static_cast<int8_t>(kMaxDevices - 1)};
  expect_error<DeviceError>([&] { allocator(last); },
                            "[device] there is no device host:15 with streams");
}

TEST(AllocatorOfDevice, IsToldOfTheEndOfAStream) {
  const Stream stream{kMeta, 5};
  NotedAllocator own;
  {
    const AllocatorOfTypeGuard guard(DeviceType::kMeta, &own);
    notify_stream_destroyed(stream);
  }
  ASSERT_EQ(own.destroyed.size(), 1u);
  EXPECT_EQ(own.destroyed[0], stream);
  // The memory of the stream that is gone serves the next new one.
  CachingAllocator& caching = caching_allocator(kMeta);
  const Stream first{kMeta, 900}, second{kMeta, 901};
  caching.free(caching.allocate(kMiB, first));
  const int64_t reserved = caching.stats().reserved;
  notify_stream_destroyed(first);
  EXPECT_EQ(own.destroyed.size(), 1u);
  caching.free(caching.allocate(kMiB, second));
  EXPECT_EQ(caching.stats().reserved, reserved);
  notify_stream_destroyed(second);
}

TEST(AllocatorOfDevice, CopiesBytesAndTakesAUseForARecordOfTheStream) {
  NotedAllocator own;
  const std::array<char, 4> from{'a', 'b', 'c', 'd'};
  std::array<char, 4> to{};
  own.copy(to.data(), from.data(), 3, Transfer::kWithin);
  EXPECT_EQ(to, (std::array<char, 4>{'a', 'b', 'c', 0}));
  own.copy(nullptr, nullptr, 0, Transfer::kWithin);
  own.record_use({}, kStream);
  EXPECT_EQ(own.recorded.size(), 1u);
}

}  // namespace
}  // namespace lockstep
