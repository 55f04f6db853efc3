#include "dist/group/work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "core/ops/factory/factory.h"
#include "core/tensor/stream.h"
#include "dist/group/work_state.h"
#include "tests/core/device/watched_memory.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

constexpr Device kStreams{DeviceType::kHost, 0};
const std::chrono::steady_clock::time_point kEpoch{};

std::exception_ptr no_luck() { return std::make_exception_ptr(std::runtime_error("no luck")); }

TEST(Work, OfNothingIsDoneAndHasNoTimes) {
  const Work work;
  EXPECT_TRUE(work.is_completed());
  work.wait();
  work.synchronize();
  EXPECT_EQ(work.ended_at(), kEpoch);
  EXPECT_EQ(work.ms_after(Event(true)), std::nullopt);
}

TEST(Work, OfTheCpuIsDoneWhenItIsFinishedAndReleasesItsTensors) {
  WatchedMemory memory(kCPU);
  const auto state = std::make_shared<WorkState>();
  state->tensors = {memory.vector(1)};
  const Work work(state);
  EXPECT_FALSE(work.is_completed());
  EXPECT_EQ(work.ended_at(), kEpoch);
  std::atomic<bool> finished = false;
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    finished = true;
    state->finish(nullptr);
  });
  work.wait();
  EXPECT_TRUE(finished);
  other.join();
  work.synchronize();
  EXPECT_TRUE(work.is_completed());
  EXPECT_EQ(memory.freed(), 1);
  EXPECT_GT(work.ended_at(), kEpoch);
  EXPECT_EQ(work.ms_after(Event(true)), std::nullopt) << "nothing was recorded";
}

TEST(Work, ThatFailedThrowsItsErrorHoweverItIsWaitedFor) {
  const OwnedStream stream(kStreams);
  const auto state = std::make_shared<WorkState>();
  state->device = kStreams;
  const Work work(state);
  state->finish(no_luck());
  EXPECT_THROW(work.wait(), std::runtime_error);
  state->finished.record(stream.get());
  EXPECT_THROW(work.wait(), std::runtime_error);
  EXPECT_THROW(work.synchronize(), std::runtime_error);
  EXPECT_TRUE(work.is_completed());
  EXPECT_EQ(work.ms_after(Event(true)), std::nullopt);
}

/// A stream that is held until it is released.
class HeldStream {
 public:
  HeldStream() {
    stream_.get().add_callback([this] { open_.wait(false); });
  }
  ~HeldStream() { release(); }
  void release() {
    open_ = true;
    open_.notify_all();
    stream_.get().synchronize();
  }
  Stream get() const { return stream_.get(); }

 private:
  OwnedStream stream_{kStreams};
  std::atomic<bool> open_ = false;
};

TEST(Work, OnADeviceMakesTheCurrentStreamWaitForIt) {
  HeldStream side;
  const OwnedStream main(kStreams);
  const StreamGuard guard(main.get());
  const auto state = std::make_shared<WorkState>();
  state->device = kStreams;
  state->finished.record(side.get());
  const Work work(state);
  work.wait();  // does not block
  EXPECT_FALSE(work.is_completed());
  EXPECT_FALSE(main.get().query()) << "later work waits for the operation";
  Event begin(true);
  begin.record(main.get());
  side.release();
  state->finish(nullptr);
  EXPECT_TRUE(work.is_completed());
  main.get().synchronize();
  const std::optional<double> ms = work.ms_after(begin);
  ASSERT_TRUE(ms);
  EXPECT_LT(*ms, 60'000);
}

TEST(Work, WhoseEventIsRecordedAtItsEndIsWaitedForUntilThen) {
  HeldStream side;
  const OwnedStream main(kStreams);
  const StreamGuard guard(main.get());
  const auto state = std::make_shared<WorkState>();
  state->device = kStreams;
  state->finished_at_end = true;
  const Work work(state);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    state->finished.record(side.get());
    state->finish(nullptr);
  });
  work.wait();
  other.join();
  EXPECT_FALSE(work.is_completed()) << "its event is not reached";
  EXPECT_FALSE(main.get().query());
  side.release();
  EXPECT_TRUE(work.is_completed());
  work.synchronize();
}

}  // namespace
}  // namespace lockstep::dist
