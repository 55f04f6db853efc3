#include "core/tensor/event.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "tests/core/expect_error.h"
#include "tests/kernels/host/host_work.h"

namespace lockstep {
namespace {

TEST(Event, OfTheCpuIsReachedWhenItIsMade) {
  Event start(true), end(true);
  EXPECT_FALSE(start.is_recorded());
  start.record(default_stream(kCPU));
  end.record(default_stream(kCPU));
  EXPECT_TRUE(start.is_recorded());
  EXPECT_TRUE(start.query());
  start.synchronize();
  EXPECT_GE(start.elapsed_ms(end), 0.0);
  default_stream(kHost0).wait_event(start);
  default_stream(kHost0).synchronize();
}

TEST(Event, NeverRecordedIsNothingToWaitFor) {
  const Event event;
  EXPECT_TRUE(event.query());
  event.synchronize();
  default_stream(kHost0).wait_event(event);
  default_stream(kHost0).synchronize();
}

TEST(Event, IsReachedWhenTheWorkBeforeItIsDone) {
  const OwnedStream stream(kHost0);
  Gate gate;
  gate.hold(stream.get());
  Event event(true), later;
  event.record(stream.get());
  queue(stream.get(), [] {});
  later.record(stream.get());
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(later.query());
  gate.open();
  later.synchronize();
  EXPECT_TRUE(event.query());
  EXPECT_EQ(event.stream(), stream.get());
}

TEST(Event, ElapsedTimeIsThatOfTheDevice) {
  const OwnedStream stream(kHost0);
  Event start(true), end(true);
  start.record(stream.get());
  queue(stream.get(), [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
  end.record(stream.get());
  end.synchronize();
  EXPECT_GE(start.elapsed_ms(end), 3.0);
  EXPECT_LE(end.elapsed_ms(start), -3.0);
}

TEST(Event, ElapsedTimeIsRefusedWhereThereIsNone) {
  const OwnedStream stream(kHost0), other(kHost1);
  Event start(true), pending(true), never(true), elsewhere(true), without;
  start.record(stream.get());
  elsewhere.record(other.get());
  without.record(stream.get());
  Gate gate;
  gate.hold(stream.get());
  pending.record(stream.get());
  start.synchronize();
  expect_error<DeviceError>([&] { (void)start.elapsed_ms(without); }, "timing");
  expect_error<DeviceError>([&] { (void)start.elapsed_ms(never); }, "never recorded");
  expect_error<DeviceError>([&] { (void)start.elapsed_ms(elsewhere); }, "host:0", "host:1");
  expect_error<DeviceError>([&] { (void)start.elapsed_ms(pending); }, "not been reached");
}

TEST(Event, StaysOnItsFirstDevice) {
  Event event;
  event.record(default_stream(kHost0));
  expect_error<DeviceError>([&] { event.record(default_stream(kHost1)); }, "host:0", "host:1");
  expect_error<DeviceError>([&] { event.record(default_stream(kCPU)); }, "host:0", "cpu");
  event.record(get_stream_from_pool(kHost0));
  Event cpu;
  cpu.record(default_stream(kCPU));
  expect_error<DeviceError>([&] { cpu.record(default_stream(kHost0)); }, "cpu", "host:0");
}

TEST(Event, MovesWithItsMark) {
  const OwnedStream stream(kHost0);
  Gate gate;
  gate.hold(stream.get());
  Event first;
  first.record(stream.get());
  Event second(std::move(first));
  EXPECT_FALSE(second.query());
  EXPECT_TRUE(first.query());
  EXPECT_FALSE(first.is_recorded());
  first = std::move(second);
  EXPECT_FALSE(first.query());
  EXPECT_TRUE(second.query());
  second.record(default_stream(kCPU));  // on any device, as a moved-from event is not recorded
  gate.open();
  first.synchronize();
}

TEST(Event, MayBeDestroyedWhileOthersWaitForItsMark) {
  const OwnedStream first(kHost0), second(kHost0);
  Gate gate;
  gate.hold(first.get());
  int value = 0;
  queue(first.get(), [&] { value = 7; });
  {
    Event event;
    event.record(first.get());
    second.get().wait_event(event);
  }
  int seen = 0;
  queue(second.get(), [&] { seen = value; });
  gate.open();
  second.get().synchronize();
  EXPECT_EQ(seen, 7);
}

TEST(Event, OutlivesItsStream) {
  Event event(true);
  {
    const OwnedStream stream(kHost0);
    queue(stream.get(), [] {});
    event.record(stream.get());
  }
  EXPECT_TRUE(event.query());
  event.synchronize();
  EXPECT_EQ(event.elapsed_ms(event), 0.0);
  default_stream(kHost0).wait_event(event);
}

}  // namespace
}  // namespace lockstep
