#include "core/tensor/storage.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

int64_t allocated() { return allocator(kCPU).stats().allocated; }

TEST(Storage, GivesItsMemoryBack) {
  const int64_t before = allocated();
  {
    const Ref<Storage> storage = make_ref<Storage>(size_t{1000}, kCPU);
    EXPECT_EQ(storage->bytes(), 1000u);
    EXPECT_GE(allocated(), before + 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 512, 0u);
  }
  EXPECT_EQ(allocated(), before);
}

TEST(Storage, OfNoBytesHoldsNone) {
  const int64_t before = allocated();
  const Storage storage(0, kCPU);
  EXPECT_EQ(storage.data(), nullptr);
  EXPECT_EQ(allocated(), before);
}

TEST(Storage, AWindowKeepsItsArenaAliveAndCountsItsOwnChanges) {
  const int64_t before = allocated();
  Ref<Storage> arena = make_ref<Storage>(size_t{4096}, kCPU);
  std::byte* start = static_cast<std::byte*>(arena->data());
  Ref<Storage> window = make_ref<Storage>(arena, size_t{1024}, size_t{512});
  EXPECT_EQ(window->data(), start + 1024);
  EXPECT_EQ(window->device(), kCPU);
  window->bump_version();
  EXPECT_EQ(window->version(), 1u);
  EXPECT_EQ(arena->version(), 0u);
  arena.reset();
  EXPECT_GT(allocated(), before) << "the window still needs the memory";
  std::memset(window->data(), 1, window->bytes());
  window.reset();
  EXPECT_EQ(allocated(), before);
}

TEST(Storage, AWindowOfAMetaArenaHasNoAddressEither) {
  const Ref<Storage> arena = make_ref<Storage>(size_t{4096}, kMeta);
  const Storage window(arena, 1024, 512);
  EXPECT_EQ(window.data(), nullptr);
  EXPECT_EQ(window.bytes(), 512u);
  EXPECT_EQ(window.device(), kMeta);
}

TEST(Storage, AWindowCannotBeResized) {
  const Ref<Storage> arena = make_ref<Storage>(size_t{4096}, kCPU);
  Storage window(arena, 0, 512);
  expect_error<DeviceError>([&] { window.resize(1024); }, "[resize]", "at most 512", "got 1024");
  EXPECT_EQ(window.bytes(), 512u);
}

TEST(Storage, ResizingKeepsTheCommonPrefix) {
  const int64_t before = allocated();
  {
    Storage storage(100, kCPU);
    std::memset(storage.data(), 0x5a, 100);
    storage.resize(1 << 20);
    EXPECT_EQ(storage.bytes(), size_t{1} << 20);
    const auto* bytes = static_cast<const unsigned char*>(storage.data());
    for (int i = 0; i < 100; ++i) ASSERT_EQ(bytes[i], 0x5a);
    storage.resize(10);
    EXPECT_EQ(storage.bytes(), 10u);
    EXPECT_EQ(storage.data(), bytes) << "shrinking moves nothing";
  }
  EXPECT_EQ(allocated(), before);
}

TEST(Storage, GrowsFromNothing) {
  Storage storage(0, kCPU);
  storage.resize(64);
  ASSERT_NE(storage.data(), nullptr);
  std::memset(storage.data(), 1, 64);
}

TEST(Storage, OfADeviceWithoutMemoryIsAnError) {
  expect_error<DeviceError>([] { Storage(16, Device{DeviceType::kCUDA, 3}); }, "cuda:3");
}

TEST(Storage, AFailedResizeLeavesItAsItWas) {
  Storage storage(16, kCPU);
  std::memset(storage.data(), 7, 16);
  EXPECT_THROW(storage.resize(size_t{1} << 60), OutOfMemoryError);
  EXPECT_EQ(storage.bytes(), 16u);
  EXPECT_EQ(static_cast<char*>(storage.data())[15], 7);
}

}  // namespace
}  // namespace lockstep
