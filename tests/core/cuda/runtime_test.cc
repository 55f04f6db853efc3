#include "core/cuda/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/core/base/child_process.h"
#include "tests/core/cuda/runtime_fixture.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CudaRuntime, LoadsTheDriverOnceAndWhenFirstAsked) {
  int loads = 0;
  Runtime counted([&] {
    ++loads;
    return fake.load();
  });
  EXPECT_EQ(loads, 0);
  std::vector<std::thread> threads;
  std::latch begin(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      EXPECT_EQ(counted.device_count(), 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads, 1);
}

TEST_F(CudaRuntime, AFailedLoadIsTriedAgainWhenItThrew) {
  int loads = 0;
  Runtime failing([&]() -> LoadedDriver {
    if (++loads == 1) throw std::bad_alloc();
    return fake.load();
  });
  EXPECT_THROW((void)failing.device_count(), std::bad_alloc);
  EXPECT_EQ(failing.device_count(), 2);
}

TEST_F(CudaRuntime, WithoutADriverThereAreNoDevicesAndErrorsSayWhy) {
  Runtime none([] { return load_driver("libno-such-driver.so.1"); });
  EXPECT_EQ(none.device_count(), 0);
  expect_error<DeviceError>([&] { (void)none.memory(0); }, "[cuda] there is no cuda:0",
                            "libno-such-driver.so.1: cannot open");
  const Availability answer = none.availability();
  EXPECT_TRUE(answer.compiled);
  EXPECT_THAT(answer.reason, HasSubstr("cannot open shared object file"));
  EXPECT_THAT(answer.devices, IsEmpty());
}

TEST_F(CudaRuntime, TellsWhatDevicesThereAre) {
  const Availability answer = runtime->availability();
  EXPECT_EQ(answer.reason, "");
  EXPECT_THAT(answer.devices, ElementsAre("Fake 0, 0.1 GiB", "Fake 1, 0.1 GiB"));
  EXPECT_EQ(answer.driver,
            std::to_string(CUDA_VERSION / 1000) + "." + std::to_string(CUDA_VERSION % 1000 / 10));
}

TEST_F(CudaRuntime, ADeviceThatThereIsNotIsAnError) {
  expect_error<DeviceError>([&] { (void)runtime->memory(2); }, "cuda:2", "a device below 2");
  expect_error<DeviceError>([&] { (void)runtime->query(stream(0, -1)); }, "cuda:-1");
}

TEST_F(CudaRuntime, ADeviceThatCannotBeAskedIsTheReasonForNone) {
  fake.fail("cuDeviceTotalMem", CUDA_ERROR_INVALID_VALUE, 1);
  EXPECT_EQ(runtime->device_count(), 0);
  EXPECT_THAT(runtime->availability().reason, HasSubstr("cuDeviceTotalMem failed"));
}

TEST_F(CudaRuntime, AThreadGetsTheContextOfTheDeviceItUses) {
  (void)runtime->native(stream(0));
  EXPECT_NE(FakeDriver::current(), nullptr);
  const CUcontext first = FakeDriver::current();
  std::thread([&] {
    EXPECT_EQ(FakeDriver::current(), nullptr);
    void* const event = runtime->create_event(0, false);
    runtime->record(event, stream(0));
    runtime->destroy_event(event);
    EXPECT_EQ(FakeDriver::current(), first);
  }).join();
}

TEST_F(CudaRuntime, ACurrentContextIsNotSetAgain) {
  runtime->copy(stream(0), nullptr, nullptr, 0, Transfer::kWithin);
  (void)runtime->native(stream(0));
  const int before = fake.context_switches();
  for (int i = 0; i < 10; ++i) (void)runtime->query(stream(0));
  EXPECT_EQ(fake.context_switches(), before);
}

TEST_F(CudaRuntime, TheCallersContextIsCurrentAgainAfterwards) {
  FakeDriver::set_current(fake.foreign_context());
  (void)runtime->native(stream(0));
  EXPECT_EQ(FakeDriver::current(), fake.foreign_context());
  fake.fail("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THROW((void)runtime->create_event(0, false), DeviceError);
  EXPECT_EQ(FakeDriver::current(), fake.foreign_context());
}

TEST_F(CudaRuntime, AContextThatCouldNotBeMadeIsTriedAgain) {
  fake.fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
  expect_error<DeviceError>([&] { (void)runtime->native(stream(0)); }, "cuDevicePrimaryCtxRetain");
  EXPECT_NE(runtime->native(stream(0)), nullptr);
}

TEST_F(CudaRuntime, ThreadsShareStreamsAndEvents) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const lockstep::Stream mine = stream(i % 4, t % 2);
        void* const event = runtime->create_event(t % 2, false);
        runtime->record(event, mine);
        runtime->wait(stream(5, t % 2), event);
        runtime->synchronize(event);
        runtime->destroy_event(event);
        const lockstep::Stream own = runtime->create_stream(t % 2, 0);
        EXPECT_TRUE(runtime->query(own));
        runtime->destroy_stream(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  runtime->synchronize(0);
  runtime->synchronize(1);
}

// Behaviour after fork().

TEST_F(CudaRuntime, AForkedProcessFindsNoDevicesAndIsToldWhy) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow forks";
  void* const event = runtime->create_event(0, false);
  runtime->record(event, stream(0));
  const lockstep::Stream own = runtime->create_stream(0, 0);
  DeviceMemory& memory = runtime->memory(0);
  fake.take_calls();
  EXPECT_EQ(status_of_child([&] {
              EXPECT_EQ(runtime->device_count(), 0);
              expect_error<DeviceError>([&] { runtime->synchronize(stream(0)); },
                                        "forked from one that had used CUDA");
              EXPECT_THAT(runtime->availability().reason, HasSubstr("forked"));
              runtime->destroy_event(event);
              runtime->destroy_stream(own);
              std::array<Granule, 1> granules{};
              EXPECT_EQ(memory.allocate(4096), nullptr);
              EXPECT_FALSE(memory.create(granules));
              memory.destroy(granules);
              EXPECT_THROW((void)memory.available(), DeviceError);
              EXPECT_THAT(fake.take_calls(), IsEmpty());
              return !testing::Test::HasFailure();
            }),
            0);
  EXPECT_EQ(runtime->device_count(), 2) << "the parent goes on";
  runtime->destroy_event(event);
}

TEST_F(CudaRuntime, AProcessForkedBeforeTheFirstUseHasTheDevices) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow forks";
  EXPECT_EQ(status_of_child([&] { return runtime->device_count() == 2; }), 0);
}

TEST_F(CudaRuntime, WhatFailedBeforeAForkFailsAfterItForTheSameReason) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow forks";
  Runtime none([] { return load_driver("libno-such-driver.so.1"); });
  EXPECT_EQ(none.device_count(), 0);
  EXPECT_EQ(status_of_child([&] {
              EXPECT_THAT(none.availability().reason, HasSubstr("cannot open"));
              return !testing::Test::HasFailure();
            }),
            0);
}

TEST_F(CudaRuntime, AForkWhileTheDriverIsLoadedDoesNotHangTheChild) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer does not follow forks";
  std::latch loading(1);
  std::latch forked(1);
  Runtime slow([&] {
    loading.count_down();
    forked.wait();
    return fake.load();
  });
  std::thread loader([&] { EXPECT_EQ(slow.device_count(), 2); });
  loading.wait();
  EXPECT_EQ(status_of_child([&] { return slow.device_count() == 0; }), 0);
  forked.count_down();
  loader.join();
}

}  // namespace
}  // namespace lockstep::cuda
