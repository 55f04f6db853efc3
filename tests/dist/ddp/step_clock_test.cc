#include "dist/ddp/step_clock.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/ops/factory/factory.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;

constexpr Device kHost{DeviceType::kHost, 0};

void sleep() { std::this_thread::sleep_for(milliseconds(20)); }

TEST(StepClock, OfTheCpuIsTheProcesss) {
  StepClock clock(kCPU);
  EXPECT_FALSE(clock.is_device());
  clock.begin();
  StepClock::Mark mark;
  EXPECT_EQ(clock.time(mark), StepClock::TimePoint()) << "never set";
  const auto before = std::chrono::steady_clock::now();
  clock.set(mark);
  EXPECT_GE(clock.time(mark), before);
  EXPECT_EQ(clock.time(mark), mark.queued());
  EXPECT_EQ(clock.end(Work(), mark), mark.queued()) << "of nothing";
}

TEST(StepClock, OfADeviceTellsWhenItComesThere) {
  const OwnedStream stream(kHost);
  const StreamGuard guard(stream.get());
  StepClock clock(kHost);
  clock.begin();
  StepClock::Mark first, second;
  clock.set(first);
  stream.get().add_callback(sleep);
  clock.set(second);
  EXPECT_GE(clock.time(second) - clock.time(first), milliseconds(19));
}

TEST(StepClock, WhatTheDeviceWasBusyWithIsNotPartOfTheStep) {
  const OwnedStream stream(kHost);
  const StreamGuard guard(stream.get());
  StepClock clock(kHost);
  stream.get().add_callback(sleep);
  clock.begin();
  StepClock::Mark beginning, mark;
  clock.set(beginning);
  stream.get().add_callback(sleep);
  clock.set(mark);
  EXPECT_LT(clock.time(beginning) - beginning.queued(), milliseconds(15));
  EXPECT_GE(clock.time(mark) - beginning.queued(), milliseconds(15));
}

TEST(StepClock, AnOperationEndsWhenItsSumIsThere) {
  for (const Device device : {kCPU, kHost}) {
    std::promise<void> begun;
    all_ranks(2, [&](ProcessGroup& group) {
      const OwnedStream stream(kHost);
      const StreamGuard guard(stream.get());
      StepClock clock(device);
      clock.begin();
      const Tensor x = ones({1000}, {DType::kF32, device});
      StepClock::Mark launched;
      clock.set(launched);
      stream.get().synchronize();
      if (group.rank() == 0) begun.set_value();
      // Rank 1 arrives later.
      if (group.rank() == 1) {
        begun.get_future().wait();
        sleep();
      }
      const Work work = group.all_reduce(x);
      work.wait();
      const auto taken = clock.end(work, launched) - clock.time(launched);
      if (group.rank() == 0) {
        EXPECT_GE(taken, milliseconds(10)) << to_string(device);
      }
      EXPECT_LT(taken, std::chrono::seconds(10));
    });
  }
}

}  // namespace
}  // namespace lockstep::dist
