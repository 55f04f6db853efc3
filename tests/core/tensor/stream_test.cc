#include "core/tensor/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/device/device_runtime.h"
#include "core/device/waits.h"
#include "core/tensor/allocator.h"
#include "core/tensor/event.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/fake_runtime.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

TEST(Stream, OfTheCpuHasAlwaysFinished) {
  const Stream stream = default_stream(kCPU);
  EXPECT_TRUE(stream.query());
  stream.synchronize();
  synchronize(kCPU);
  EXPECT_EQ(stream.priority(), 0);
  EXPECT_EQ(get_stream_from_pool(kCPU), stream);
  EXPECT_EQ(get_stream_from_pool(kMeta, -1), default_stream(kMeta));
  EXPECT_EQ(OwnedStream(kCPU).get(), stream);
  bool called = false;
  stream.add_callback([&] { called = true; });
  EXPECT_TRUE(called);
  expect_error<DeviceError>([] { Stream{kCPU, 1}.synchronize(); }, "cpu stream 1", "stream 0");
}

TEST(Stream, OfTheCpuWaitsForADeviceOnTheSpot) {
  const OwnedStream stream(kHost0);
  int ran = 0;
  queue(stream.get(), [&] { ++ran; });
  default_stream(kCPU).wait_stream(stream.get());
  EXPECT_EQ(ran, 1);
  stream.get().wait_stream(default_stream(kCPU));
}

TEST(Stream, IsNamedByDeviceAndNumber) {
  EXPECT_EQ(to_string(Stream{kHost1, 3}), "host:1 stream 3");
}

TEST(Stream, GuardsNestAndBelongToTheirThreadAndDevice) {
  const Stream first{kHost0, 3}, second{kHost0, 4}, other{kHost1, 5};
  EXPECT_EQ(current_stream(kHost0), default_stream(kHost0));
  {
    const StreamGuard outer(first);
    EXPECT_EQ(current_stream(kHost0), first);
    {
      const StreamGuard inner(second);
      const StreamGuard elsewhere(other);
      EXPECT_EQ(current_stream(kHost0), second);
      EXPECT_EQ(current_stream(kHost1), other);
      std::thread([] { EXPECT_EQ(current_stream(kHost0), default_stream(kHost0)); }).join();
    }
    EXPECT_EQ(current_stream(kHost0), first);
    EXPECT_EQ(current_stream(kHost1), default_stream(kHost1));
  }
  EXPECT_EQ(current_stream(kHost0), default_stream(kHost0));
}

TEST(Stream, ThePoolHandsItsStreamsOutInTurn) {
  for (const int priority : {0, -1}) {
    std::set<int32_t> ids;
    for (int i = 0; i < kPoolStreams; ++i) {
      const Stream stream = get_stream_from_pool(kHost0, priority);
      EXPECT_EQ(stream.priority(), priority);
      ids.insert(stream.id);
    }
    EXPECT_EQ(ids.size(), size_t{kPoolStreams});
    EXPECT_FALSE(ids.contains(0));
    EXPECT_TRUE(ids.contains(get_stream_from_pool(kHost0, priority).id));
  }
}

TEST(Stream, WrongDevicesAndPrioritiesAreRefused) {
  const Device none{DeviceType::kHost, kMaxDevices - 1};
  expect_error<DeviceError>([&] { (void)get_stream_from_pool(none); }, to_string(none), "host:0");
  expect_error<DeviceError>([&] { synchronize(none); }, to_string(none));
  expect_error<DeviceError>([&] { const OwnedStream stream(none); }, to_string(none));
  expect_error<DeviceError>([] { (void)get_stream_from_pool(kHost0, 1); }, "priority", "got 1");
  expect_error<DeviceError>([] { const OwnedStream stream(kHost0, 2); }, "got 2");
  expect_error<DeviceError>([] { (void)external_stream(kCPU, nullptr); }, "cpu");
}

TEST(OwnedStream, MovesWithoutBeingDestroyed) {
  OwnedStream first(kHost0);
  const Stream stream = first.get();
  OwnedStream second(std::move(first));
  EXPECT_EQ(second.get(), stream);
  OwnedStream third(kHost0);
  const Stream replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), stream);
  EXPECT_TRUE(stream.query());
  EXPECT_THROW((void)replaced.query(), DeviceError);
}

TEST(OwnedStream, LeavesItsMemoryToTheNext) {
  const auto address_on_a_new_stream = [] {
    const OwnedStream stream(kHost0);
    const Block block = allocator(kHost0).allocate(3 << 20, stream.get());
    allocator(kHost0).free(block);
    return block.data;
  };
  void* const first = address_on_a_new_stream();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(address_on_a_new_stream(), first);
}

TEST(Stream, AnEmptyCallbackIsRefused) {
  expect_error<DeviceError>([] { default_stream(kHost0).add_callback({}); }, "add_callback");
}

TEST(HiddenWaits, AreCountedWhereADeviceIsWaitedFor) {
  const OwnedStream stream(kHost0);
  const int64_t before = hidden_waits();
  stream.get().synchronize();
  EXPECT_EQ(hidden_waits(), before) << "somebody asked for this one";
  int ran = 0;
  queue(stream.get(), [&] { ++ran; });
  wait_hidden("item", stream.get(), "the operator returns a number");
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(hidden_waits(), before + 1);
  wait_hidden("item", default_stream(kCPU), "nothing to wait for");
  EXPECT_EQ(hidden_waits(), before + 1);
}

TEST(HiddenWaitsDeathTest, AreNamedOnRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("LOCKSTEP_WARN_WAITS", "1", 1);
        wait_hidden("item", Stream{kHost0, 2}, "the operator returns a number");
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0),
      "wait: \\[item\\] host:0 stream 2: the operator returns a number");
}

TEST(Devices, AreCountedByType) {
  EXPECT_EQ(device_count(DeviceType::kCPU), 1);
  EXPECT_EQ(device_count(DeviceType::kMeta), 1);
  EXPECT_EQ(device_count(DeviceType::kHost), host_options().devices);
  EXPECT_EQ(device_count(DeviceType::kPrivate4), 0);
  EXPECT_EQ(find_runtime(kCPU), nullptr);
  EXPECT_EQ(find_runtime({DeviceType::kPrivate4, 0}), nullptr);
  EXPECT_EQ(find_runtime(kHost0), &require_runtime(kHost0));
  expect_error<DeviceError>([] { (void)require_runtime(kCPU); }, "cpu", "host:0");
}

TEST(Devices, SayWhyTheirRuntimeHasNone) {
  FakeRuntime runtime(size_t{1} << 20);
  runtime.unavailable = "its driver is missing";
  expect_error<DeviceError>([] { (void)require_runtime(FakeRuntime::kDevice); },
                            "There is no device of this type to use: its driver is missing.");
}

}  // namespace
}  // namespace lockstep
