#include "core/tensor/storage.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/tensor/tensor.h"
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

TEST(Storage, AWindowThatIsPlacedAgainMovesEveryTensorOverIt) {
  const Ref<Storage> first = make_ref<Storage>(size_t{4096}, kCPU);
  const Ref<Storage> second = make_ref<Storage>(size_t{4096}, kCPU);
  const Ref<Storage> window = make_ref<Storage>(first, size_t{1024}, size_t{512});
  const Tensor tensor(make_ref<TensorImpl>(window, IntList{128}, 128, DType::kF32));
  const Tensor view = alias_tensor(tensor, {64}, {1}, 64, DType::kF32, true);
  window->bump_version();
  window->place_window(second, 512);
  std::byte* const start = static_cast<std::byte*>(second->data());
  EXPECT_EQ(tensor.data(), start + 512);
  EXPECT_EQ(view.data(), start + 512 + 64 * sizeof(float));
  EXPECT_EQ(window->version(), 1u) << "the caller says when contents change";
}

TEST(Storage, AWindowThatWasTakenAwayFreesItsArenaAndSaysWhyItHasNoAddress) {
  const int64_t before = allocated();
  Ref<Storage> arena = make_ref<Storage>(size_t{4096}, kCPU);
  const Ref<Storage> window = make_ref<Storage>(arena, size_t{0}, size_t{512});
  const Tensor tensor(make_ref<TensorImpl>(window, IntList{128}, 128, DType::kF32));
  window->take_window_away("[test] it is elsewhere.");
  arena.reset();
  EXPECT_EQ(allocated(), before);
  EXPECT_EQ(tensor.numel(), 128);
  EXPECT_EQ(tensor.device(), kCPU);
  expect_error<DeviceError>([&] { (void)tensor.data(); }, "[test] it is elsewhere.");
  expect_error<DeviceError>([&] { (void)tensor.sum(); }, "[test] it is elsewhere.");

  arena = make_ref<Storage>(size_t{4096}, kCPU);
  window->place_window(arena, 0);
  EXPECT_EQ(tensor.data(), arena->data());
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
