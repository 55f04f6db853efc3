// Streams and events of the CUDA runtime over a fake driver: creation, order of work, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/cuda/runtime_fixture.h"
#include "tests/core/expect_error.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CudaStreams : public CudaRuntime {};

// Creation of streams.

TEST_F(CudaStreams, PooledStreamsAreMadeWhenUsedOfTheirPriorityAndOnce) {
  (void)runtime->device_count();
  EXPECT_EQ(fake.streams_made(), 0);
  std::set<void*> natives;
  for (const int id : {0, 1, kPoolStreams, kPoolStreams + 1, 2 * kPoolStreams, 1, 0}) {
    natives.insert(runtime->native(stream(id)));
    EXPECT_EQ(runtime->priority(stream(id)), id > kPoolStreams ? -1 : 0) << id;
  }
  EXPECT_EQ(natives.size(), 5u);
  EXPECT_EQ(fake.streams_made(), 5);
}

TEST_F(CudaStreams, NothingIsMadeToAskWhetherAnUnusedStreamIsDone) {
  EXPECT_TRUE(runtime->query(stream(3)));
  runtime->synchronize(stream(3));
  EXPECT_EQ(fake.streams_made(), 0);
}

TEST_F(CudaStreams, ACreatedStreamHasTheNearestPriorityThatTheDeviceHas) {
  const lockstep::Stream high = runtime->create_stream(1, -100);
  EXPECT_EQ(high.device, (lockstep::Device{DeviceType::kCUDA, 1}));
  EXPECT_GT(high.id, 2 * kPoolStreams);
  EXPECT_EQ(runtime->priority(high), -5);
  EXPECT_EQ(runtime->priority(runtime->create_stream(1, 0)), 0);
}

TEST_F(CudaStreams, ADestroyedStreamIsWaitedForAndThenAnError) {
  std::array<char, 4> from{'a', 'b', 'c', 'd'};
  std::array<char, 4> to{};
  const lockstep::Stream own = runtime->create_stream(0, 0);
  runtime->copy(own, to.data(), from.data(), 4, Transfer::kWithin);
  EXPECT_FALSE(runtime->query(own));
  fake.take_calls();
  runtime->destroy_stream(own);
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuStreamSynchronize", "cuStreamDestroy"));
  EXPECT_EQ(to, from);
  expect_error<DeviceError>([&] { runtime->synchronize(own); }, "cuda:0 stream", "was destroyed");
  expect_error<DeviceError>(
      [&] { runtime->copy(own, to.data(), from.data(), 4, Transfer::kWithin); }, "was destroyed");
  runtime->destroy_stream(own);
  EXPECT_THAT(fake.take_calls(), IsEmpty());
  EXPECT_NE(runtime->create_stream(0, 0).id, own.id) << "its number is not used again";
  expect_error<DeviceError>([&] { runtime->synchronize(stream(9999)); }, "was never made");
  expect_error<DeviceError>([&] { runtime->synchronize(stream(-1)); }, "was never made");
}

TEST_F(CudaStreams, PooledStreamsOutliveBeingDestroyed) {
  void* const native = runtime->native(stream(1));
  runtime->destroy_stream(stream(1));
  EXPECT_EQ(runtime->native(stream(1)), native);
}

TEST_F(CudaStreams, AnAdoptedStreamIsItsOwnersToDestroy) {
  const CUstream theirs = fake.foreign_stream(1);
  const lockstep::Stream adopted = runtime->adopt_stream(1, theirs);
  EXPECT_EQ(runtime->native(adopted), theirs);
  EXPECT_EQ(runtime->adopt_stream(1, theirs), adopted) << "one name for one stream";
  fake.take_calls();
  runtime->destroy_stream(adopted);
  EXPECT_THAT(fake.take_calls(), ElementsAre("cuStreamSynchronize"));
  expect_error<DeviceError>([&] { (void)runtime->native(adopted); }, "was destroyed");
  fake.destroy_foreign_stream(theirs);
}

TEST_F(CudaStreams, AStreamOfAnotherDeviceIsNotAdopted) {
  const CUstream theirs = fake.foreign_stream(1);
  expect_error<DeviceError>([&] { (void)runtime->adopt_stream(0, theirs); }, "[external_stream]",
                            "a stream of cuda:0");
}

TEST_F(CudaStreams, TheDriversNullStreamCanBeAdopted) {
  const lockstep::Stream null = runtime->adopt_stream(0, nullptr);
  EXPECT_EQ(runtime->native(null), CU_STREAM_LEGACY);
  EXPECT_EQ(runtime->priority(null), 0);
}

TEST_F(CudaStreams, ARefusedStreamIsAnErrorAndLeavesThePlace) {
  fake.fail("cuStreamCreateWithPriority", CUDA_ERROR_OUT_OF_MEMORY);
  expect_error<DeviceError>([&] { (void)runtime->native(stream(5)); },
                            "[cuda] cuStreamCreateWithPriority failed");
  EXPECT_NE(runtime->native(stream(5)), nullptr);
}

// Order of work.

TEST_F(CudaStreams, CopiesRunInOrderAndWhenWaitedFor) {
  int from = 1;
  int between = 0;
  int to = 0;
  runtime->copy(stream(0), &between, &from, sizeof from, Transfer::kFromCpu);
  runtime->copy(stream(0), &to, &between, sizeof to, Transfer::kToCpu);
  runtime->copy(stream(0), nullptr, nullptr, 0, Transfer::kWithin);
  EXPECT_FALSE(runtime->query(stream(0)));
  EXPECT_EQ(to, 0);
  runtime->synchronize(stream(0));
  EXPECT_EQ(to, 1);
  EXPECT_TRUE(runtime->query(stream(0)));
}

TEST_F(CudaStreams, SynchronisingADeviceWaitsForAllOfItsStreamsOnly) {
  int from = 1;
  std::array<int, 3> to{};
  runtime->copy(stream(1), &to[0], &from, sizeof from, Transfer::kWithin);
  runtime->copy(stream(2), &to[1], &from, sizeof from, Transfer::kWithin);
  runtime->copy(stream(1, 1), &to[2], &from, sizeof from, Transfer::kWithin);
  runtime->synchronize(0);
  EXPECT_THAT(to, ElementsAre(1, 1, 0));
  runtime->synchronize(1);
  EXPECT_EQ(to[2], 1);
}

TEST_F(CudaStreams, AStreamWaitsForTheMarkOfAnother) {
  int value = 1;
  int between = 0;
  int to = 0;
  void* const event = runtime->create_event(0, false);
  runtime->copy(stream(1), &between, &value, sizeof value, Transfer::kWithin);
  runtime->record(event, stream(1));
  runtime->wait(stream(2), event);
  runtime->copy(stream(2), &to, &between, sizeof to, Transfer::kWithin);
  EXPECT_FALSE(runtime->query(event));
  runtime->synchronize(stream(2));
  EXPECT_EQ(to, 1);
  EXPECT_TRUE(runtime->query(event));
  runtime->destroy_event(event);
}

TEST_F(CudaStreams, DevicesWaitForEachOther) {
  int value = 1;
  int between = 0;
  int to = 0;
  void* const event = runtime->create_event(0, false);
  runtime->copy(stream(0), &between, &value, sizeof value, Transfer::kWithin);
  runtime->record(event, stream(0));
  runtime->wait(stream(0, 1), event);
  runtime->copy(stream(0, 1), &to, &between, sizeof to, Transfer::kWithin);
  runtime->synchronize(1);
  EXPECT_EQ(to, 1);
  runtime->destroy_event(event);
}

TEST_F(CudaStreams, AWaitKeepsTheMarkThatItSaw) {
  int value = 1;
  int to = 0;
  void* event = runtime->create_event(0, false);
  runtime->record(event, stream(1));
  runtime->wait(stream(2), event);
  runtime->copy(stream(1), &to, &value, sizeof value, Transfer::kWithin);
  runtime->record(event, stream(1));
  runtime->synchronize(stream(2));
  EXPECT_EQ(to, 0) << "the second mark is later than what was waited for";
  runtime->synchronize(event);
  EXPECT_EQ(to, 1);
  runtime->destroy_event(event);
}

TEST_F(CudaStreams, AnEventMayGoWhileAStreamWaitsForItsMark) {
  int value = 1;
  int between = 0;
  int to = 0;
  void* event = runtime->create_event(0, false);
  runtime->copy(stream(1), &between, &value, sizeof value, Transfer::kWithin);
  runtime->record(event, stream(1));
  runtime->wait(stream(2), event);
  runtime->destroy_event(event);
  event = runtime->create_event(0, false);  // the driver's event is reused, with no record yet
  EXPECT_TRUE(runtime->query(event));
  runtime->synchronize(event);
  EXPECT_EQ(between, 0) << "its old mark is nobody's business";
  runtime->wait(stream(3), event);
  runtime->copy(stream(2), &to, &between, sizeof to, Transfer::kWithin);
  runtime->synchronize(stream(2));
  EXPECT_EQ(to, 1);
  runtime->destroy_event(event);
}

TEST_F(CudaStreams, EventsAreMadeOnceForAsManyAsLiveAtATime) {
  for (int step = 0; step < 10; ++step) {
    std::vector<void*> events;
    for (int i = 0; i < 40; ++i) events.push_back(runtime->create_event(0, i % 2 == 0));
    for (void* const event : events) runtime->record(event, stream(0));
    for (void* const event : events) runtime->destroy_event(event);
  }
  runtime->synchronize(0);
  EXPECT_EQ(fake.events_made(), 40);
}

TEST_F(CudaStreams, TimeIsBetweenTwoMarksThatWereReached) {
  int value = 1;
  int to = 0;
  void* const start = runtime->create_event(0, true);
  void* const end = runtime->create_event(0, true);
  void* const plain = runtime->create_event(0, false);
  runtime->record(start, stream(0));
  runtime->record(plain, stream(0));
  runtime->copy(stream(0), &to, &value, sizeof value, Transfer::kWithin);
  runtime->record(end, stream(0));
  expect_error<DeviceError>([&] { (void)runtime->elapsed_ms(start, end); }, "[elapsed_ms]",
                            "has not been reached");
  runtime->synchronize(end);
  EXPECT_EQ(runtime->elapsed_ms(start, end), 3.0);
  expect_error<DeviceError>([&] { (void)runtime->elapsed_ms(plain, end); }, "with timing");
  for (void* const event : {start, end, plain}) runtime->destroy_event(event);
}

TEST_F(CudaStreams, AnEventMarksStreamsOfItsDeviceOnly) {
  void* const event = runtime->create_event(0, false);
  expect_error<DeviceError>([&] { runtime->record(event, stream(0, 1)); }, "cuda:0",
                            "cuda:1 stream 0");
  runtime->destroy_event(event);
}

TEST_F(CudaStreams, CallbacksRunAfterTheWorkBefore) {
  int value = 1;
  int to = 0;
  int seen = -1;
  runtime->copy(stream(0), &to, &value, sizeof value, Transfer::kWithin);
  runtime->add_callback(stream(0), [&] { seen = to; });
  EXPECT_EQ(seen, -1);
  runtime->synchronize(stream(0));
  EXPECT_EQ(seen, 1);
}

TEST_F(CudaStreams, ARefusedCallbackIsDestroyedAndNotCalled) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owned;
  fake.fail("cuLaunchHostFunc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THROW(runtime->add_callback(stream(0), [owned = std::move(owned)] { FAIL() << *owned; }),
               DeviceError);
  EXPECT_TRUE(watched.expired());
}

TEST_F(CudaStreams, KernelsOfTheCpuAreRefused) {
  expect_error<DeviceError>([&] { runtime->launch(stream(0), nullptr); }, "cuda:0 stream 0");
  EXPECT_FALSE(runtime->runs_cpu_kernels());
}

TEST_F(CudaStreams, AFailedKernelIsReportedByEveryLaterCall) {
  void* const event = runtime->create_event(0, false);
  runtime->record(event, stream(0));
  fake.poison(CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string name = "CUDA_ERROR_ILLEGAL_ADDRESS";
  expect_error<DeviceError>([&] { runtime->synchronize(stream(0)); }, "cuStreamSynchronize", name);
  expect_error<DeviceError>([&] { runtime->synchronize(0); }, "cuCtxSynchronize", name);
  expect_error<DeviceError>([&] { (void)runtime->query(stream(0)); }, "cuStreamQuery", name);
  expect_error<DeviceError>([&] { (void)runtime->query(event); }, "cuEventQuery", name);
  expect_error<DeviceError>([&] { runtime->record(event, stream(0)); }, "cuEventRecord", name);
  expect_error<DeviceError>([&] { (void)runtime->native(stream(7)); }, name);
  runtime->destroy_event(event);
  fake.poison(CUDA_SUCCESS);  // lets the fixture tear down
}

}  // namespace
}  // namespace lockstep::cuda
