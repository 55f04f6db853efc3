#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/base/current_scope.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/device/device_runtime.h"
#include "core/tensor/event.h"
#include "core/tensor/generator.h"
#include "kernels/host/kernel_gate.h"
#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(HostStream, WorkOfOneStreamRunsInOrder) {
  const OwnedStream stream(kHost0);
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) queue(stream.get(), [&order, i] { order.push_back(i); });
  stream.get().synchronize();
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(HostStream, AStreamDoesNotWaitForAnother) {
  const OwnedStream held(kHost0), other(kHost0);
  Gate gate;
  gate.hold(held.get());
  bool ran = false;
  queue(other.get(), [&] { ran = true; });
  other.get().synchronize();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(held.get().query());
  gate.open();
  held.get().synchronize();
  EXPECT_TRUE(held.get().query());
}

TEST(HostStream, WaitStreamOrdersTwoStreamsWithoutBlockingTheCaller) {
  const OwnedStream first(kHost0), second(kHost1);
  Gate gate;
  gate.hold(first.get());
  std::vector<int> order;
  queue(first.get(), [&] { order.push_back(1); });
  second.get().wait_stream(first.get());
  queue(second.get(), [&] { order.push_back(2); });
  EXPECT_FALSE(second.get().query());
  gate.open();
  second.get().synchronize();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(HostStream, AWaitKeepsTheMarkThatItSaw) {
  const OwnedStream first(kHost0), second(kHost0);
  Event event;
  Gate early, late;
  early.hold(first.get());
  event.record(first.get());
  second.get().wait_event(event);
  late.hold(first.get());
  event.record(first.get());
  early.open();
  second.get().synchronize();  // would wait for `late` if the second record counted
  EXPECT_FALSE(event.query());
  late.open();
  event.synchronize();
}

TEST(HostStream, LaterWorkWaitsForACallback) {
  const OwnedStream stream(kHost0);
  std::vector<int> order;
  queue(stream.get(), [&] { order.push_back(1); });
  stream.get().add_callback([&] { order.push_back(2); });
  queue(stream.get(), [&] { order.push_back(3); });
  stream.get().synchronize();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(HostStream, SynchronizeOfADeviceWaitsForItsStreamsOnly) {
  const OwnedStream a(kHost0), b(kHost0), other(kHost1);
  Gate gate;
  gate.hold(other.get());
  std::atomic<int> ran = 0;
  queue(a.get(), [&] { ++ran; });
  queue(b.get(), [&] { ++ran; });
  synchronize(kHost0);
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(other.get().query());
}

TEST(HostStream, ADestroyedStreamHasDoneItsWorkAndCannotBeUsed) {
  Stream copy;
  bool ran = false;
  {
    const OwnedStream stream(kHost0);
    copy = stream.get();
    Gate gate;
    gate.hold(copy);
    queue(copy, [&] { ran = true; });
  }
  EXPECT_TRUE(ran);
  const std::string name = to_string(copy);
  expect_error<DeviceError>([&] { queue(copy, [] {}); }, name, "destroyed");
  expect_error<DeviceError>([&] { copy.synchronize(); }, name, "destroyed");
  expect_error<DeviceError>([&] { (void)copy.query(); }, name, "destroyed");
  Event event;
  expect_error<DeviceError>([&] { event.record(copy); }, name, "destroyed");
  EXPECT_TRUE(event.query());
  expect_error<DeviceError>([&] { default_stream(kHost0).wait_stream(copy); }, name, "destroyed");
}

TEST(HostStream, StreamsThatWereNeverMadeAreRefused) {
  expect_error<DeviceError>([] { (void)Stream{kHost0, 1 << 30}.query(); }, "never made");
  expect_error<DeviceError>([] { (void)Stream{kHost0, -1}.query(); }, "never made");
  const Device beyond{DeviceType::kHost, static_cast<int8_t>(device_count(DeviceType::kHost))};
  expect_error<DeviceError>([&] { queue(default_stream(beyond), [] {}); }, to_string(beyond),
                            "host:0");
}

TEST(HostStream, ExternalQueuesAreRefused) {
  int something = 0;
  expect_error<DeviceError>([&] { (void)external_stream(kHost0, &something); }, "external_stream");
}

TEST(HostStream, AKernelsErrorIsThrownOnceWithOperatorAndModule) {
  const OwnedStream stream(kHost0);
  bool later = false;
  {
    const ModuleScope scope("h.3.attn");
    queue(stream.get(), [] { throw IndexError("[take] index 7 is out of range."); });
  }
  queue(stream.get(), [] { throw ShapeError("the second error"); });
  queue(stream.get(), [&] { later = true; });
  expect_error<IndexError>([&] { stream.get().synchronize(); }, "index 7 is out of range",
                           "add.Tensor", to_string(stream.get()), "h.3.attn");
  EXPECT_TRUE(later);
  stream.get().synchronize();  // an error is thrown only once
}

TEST(HostStream, TheCallStackOfAFailingKernelIsToldWhenItIsKept) {
  const OwnedStream stream(kHost0);
  const HostOptionsGuard guard([](HostOptions& options) { options.call_stacks = true; });
  queue(stream.get(), [] { throw IndexError("out of range"); });
  expect_error<IndexError>([&] { stream.get().synchronize(); }, "called at", "test_");
}

TEST(HostStream, AnEventThrowsOnlyWhatCameBeforeIt) {
  const OwnedStream stream(kHost0);
  Event before, after;
  queue(stream.get(), [] {});
  before.record(stream.get());
  queue(stream.get(), [] { throw IndexError("out of range"); });
  after.record(stream.get());
  while (!after.query()) std::this_thread::yield();
  before.synchronize();
  expect_error<IndexError>([&] { after.synchronize(); }, "out of range");
  after.synchronize();
}

TEST(HostStream, TheDeviceThrowsTheErrorsOfItsStreamsOneByOne) {
  synchronize(kHost0);
  {
    const OwnedStream first(kHost0), second(kHost0);
    queue(first.get(), [] { throw IndexError("first"); });
    queue(second.get(), [] { throw ShapeError("second"); });
    expect_error<IndexError>([] { synchronize(kHost0); }, "first");
  }
  // The second stream was destroyed before its error was thrown.
  expect_error<ShapeError>([] { synchronize(kHost0); }, "second");
  synchronize(kHost0);
}

TEST(HostStream, ACallbacksExceptionIsKept) {
  const OwnedStream stream(kHost0);
  stream.get().add_callback([] { throw 3; });
  EXPECT_THROW(stream.get().synchronize(), int);
  stream.get().synchronize();
}

TEST(HostStream, AKernelDrawsTheNumbersReservedForIt) {
  const OwnedStream stream(kHost0);
  const RandomKey key{.seed = 9, .step = 4, .micro_batch = 2, .call = 7};
  RandomKey seen;
  auto kernel = std::make_unique<FunctionKernel>([&] { seen = default_generator().next_call(); });
  kernel->set_random(key);
  queue_kernel(stream.get(), std::move(kernel));
  stream.get().synchronize();
  EXPECT_EQ(seen, key);
}

TEST(HostStream, KernelsRunWithFreshThreadLocalsAndTheirOwnNumberOfThreads) {
  const OwnedStream stream(kHost1);
  const DefaultDeviceGuard device(kHost1);
  const StreamGuard current(stream.get());
  Device seen_device = kMeta;
  int32_t seen_stream = -1;
  std::array<int, 2> threads{};
  queue(stream.get(), [&] {
    seen_device = default_device();
    seen_stream = current_stream(kHost1).id;
    threads[0] = num_threads();
  });
  stream.get().synchronize();
  const HostOptionsGuard guard([](HostOptions& options) { options.kernel_threads = 3; });
  queue(stream.get(), [&] { threads[1] = num_threads(); });
  stream.get().synchronize();
  EXPECT_EQ(seen_device, kCPU);
  EXPECT_EQ(seen_stream, 0);
  EXPECT_THAT(threads, ElementsAre(1, 3));
}

TEST(HostStream, CopiesAreWorkOfTheStream) {
  const OwnedStream stream(kHost0);
  std::array<char, 64> from{}, to{};
  Gate gate;
  gate.hold(stream.get());
  queue(stream.get(), [&] { from.fill('x'); });
  copy_async(stream.get(), to.data(), from.data(), from.size(), Transfer::kToCpu);
  EXPECT_EQ(to[63], '\0');
  gate.open();
  stream.get().synchronize();
  EXPECT_EQ(to, from);
  EXPECT_EQ(to[63], 'x');
}

TEST(HostStream, ACopyTakesItsLatencyAndItsTimeOnTheBus) {
  const HostOptionsGuard guard([](HostOptions& options) {
    options.copy_latency_us = 3000;
    options.copy_bandwidth = 1e6;
  });
  const OwnedStream stream(kHost0);
  std::array<char, 2000> from{}, to{};
  Event start(true), end(true);
  start.record(stream.get());
  copy_async(stream.get(), to.data(), from.data(), from.size(), Transfer::kToCpu);
  end.record(stream.get());
  end.synchronize();
  EXPECT_GE(start.elapsed_ms(end), 5.0);
}

TEST(HostStream, TheNthKernelAndCopyFailOnRequest) {
  const OwnedStream stream(kHost0);
  int ran = 0;
  {
    const HostFaultGuard fault(HostFault::kKernel, 2);
    for (int i = 0; i < 3; ++i) queue(stream.get(), [&] { ++ran; });
    expect_error<DeviceError>([&] { stream.get().synchronize(); }, "add.Tensor");
    EXPECT_EQ(fault.calls(), 3);
  }
  EXPECT_EQ(ran, 2);
  const HostFaultGuard fault(HostFault::kCopy, 1, /*all_later=*/true);
  char from = 'x', to = 0;
  copy_async(stream.get(), &to, &from, 1, Transfer::kToCpu);
  copy_async(stream.get(), &to, &from, 1, Transfer::kToCpu);
  expect_error<DeviceError>([&] { stream.get().synchronize(); }, "copy of 1 bytes");
  EXPECT_EQ(to, 0);
}

TEST(HostStream, EightThreadsUseSixteenStreamsAtOnce) {
  constexpr int kThreads = 8, kStreams = 16, kRounds = 150;
  std::vector<OwnedStream> streams;
  for (int i = 0; i < kStreams; ++i) streams.emplace_back(i % 2 == 0 ? kHost0 : kHost1);
  // Each slot is written on one stream and read on another, which waits for an event in between.
  std::vector<int> slots(kThreads * kRounds);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        const Stream from = streams[random() % kStreams].get();
        const Stream to = streams[random() % kStreams].get();
        int* const slot = &slots[static_cast<size_t>(t * kRounds + i)];
        queue(from, [=] { *slot = i + 1; });
        Event event;
        event.record(from);
        to.wait_event(event);
        queue(to, [=, &wrong] { wrong += *slot != i + 1; });
        if (random() % 16 == 0) to.synchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  synchronize(kHost0);
  synchronize(kHost1);
  EXPECT_EQ(wrong, 0);
}

TEST(HostStream, StreamsAreMadeAndDestroyedByManyThreads) {
  std::atomic<int> ran = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const OwnedStream stream(kHost0);
        queue(stream.get(), [&] { ++ran; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 80);
}

TEST(HostStream, AForkedChildHasIdleStreams) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads after a fork";
  const OwnedStream stream(kHost0);
  Gate gate;
  gate.hold(stream.get());
  gate.hold(default_stream(kHost0));
  Event event;
  event.record(stream.get());
  EXPECT_EQ(status_of_child([&] {
              if (!stream.get().query() || !event.query()) return false;
              synchronize(kHost0);
              int ran = 0;
              for (const Stream& each : {stream.get(), default_stream(kHost0)}) {
                queue(each, [&] { ++ran; });
                each.synchronize();
              }
              return ran == 2;
            }),
            0);
  EXPECT_FALSE(event.query());
  gate.open();
  synchronize(kHost0);
}

TEST(HostStream, MayBeForkedWhileOtherThreadsUseIt) {
  if (!kForksAmongBusyThreads) GTEST_SKIP() << "the allocator may stay locked in a child";
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) {
      const OwnedStream stream(kHost0);
      for (int i = 0; i < 10; ++i) queue(stream.get(), [] {});
      stream.get().synchronize();
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(status_of_child([] {
                bool ran = false;
                const OwnedStream stream(kHost0);
                queue(stream.get(), [&] { ran = true; });
                stream.get().synchronize();
                return ran;
              }),
              0);
  }
  stop = true;
  busy.join();
}

TEST(HostStreamDeathTest, AProcessMayEndWithQueuedWork) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads after a fork";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        for (int s = 0; s < 4; ++s) {
          for (int i = 0; i < 1000; ++i) {
            queue(get_stream_from_pool(kHost0), [] { usleep(1000); });
          }
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(KernelGate, TheHighestPriorityThatWaitsGoesFirst) {
  host::KernelGate gate;
  gate.set_limit(1);
  std::vector<int> order;
  std::vector<std::thread> workers;
  {
    const host::KernelGate::Pass pass(gate, 0);
    for (const int priority : {0, -1, -2}) {
      workers.emplace_back([&, priority] {
        const host::KernelGate::Pass mine(gate, priority);
        order.push_back(priority);
      });
      while (gate.waiting() != workers.size()) std::this_thread::yield();
    }
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_THAT(order, ElementsAre(-2, -1, 0));
}

TEST(KernelGate, NoMoreRunThanTheLimitSays) {
  host::KernelGate gate;
  gate.set_limit(2);
  std::atomic<int> running = 0, most = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < 6; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const host::KernelGate::Pass pass(gate, 0);
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --running;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_LE(most, 2);
}

TEST(HostStream, WorkOfAHighPriorityStreamGoesFirstWhereKernelsAreLimited) {
  const HostOptionsGuard guard([](HostOptions& options) { options.concurrent_kernels = 1; });
  const OwnedStream held(kHost0), normal(kHost0), high(kHost0, -1);
  EXPECT_EQ(normal.get().priority(), 0);
  EXPECT_EQ(high.get().priority(), -1);
  Gate gate;
  gate.hold(held.get());
  gate.wait_until_held();
  std::atomic<int> running = 0, most = 0;
  for (const Stream& stream : {normal.get(), high.get()}) {
    for (int i = 0; i < 20; ++i) {
      queue(stream, [&] {
        most = std::max(most.load(), ++running);
        --running;
      });
    }
  }
  EXPECT_FALSE(high.get().query());
  gate.open();
  synchronize(kHost0);
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace lockstep
