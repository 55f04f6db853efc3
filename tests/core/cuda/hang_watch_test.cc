#include "core/cuda/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/cuda/pattern_word.h"
#include "core/cuda/silence.h"
#include "tests/core/cuda/fake_gpu.h"

namespace lockstep::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kFillingImage[] = {0xba55ed50};
const Kernel kFilling(kFillingImage, "fill_pattern");
const Device kWatched{DeviceType::kCUDA, 0};
constexpr milliseconds kHangLimit(256);

/// A GPU with a watch of which the first text is kept.
class GpuHangWatch : public ::testing::Test {
 protected:
  void watch(milliseconds limit) {
    watch_ = std::make_unique<HangWatch>(
        kWatched, limit, [this](const std::string& text) { told_.set_value(text); });
  }
  void launch(int stream) {
    gpu_.runtime.launch_kernel({kWatched, stream}, kFilling, {.threads = 32}, &pattern_);
  }
  /// Waits until the watch has looked `times` more.
  void wait_for_looks(uint64_t times) const {
    for (const uint64_t end = watch_->looks() + times; watch_->looks() < end;) {
      std::this_thread::sleep_for(milliseconds(1));  // leaves the watch its lock
    }
  }
  std::string told() { return told_.get_future().get(); }

  FakeGpu gpu_;
  std::array<uint64_t, 32> words_{};
  const Pattern pattern_{words_.data(), words_.size(), 7};
  std::promise<std::string> told_;
  std::unique_ptr<HangWatch> watch_;
};

TEST_F(GpuHangWatch, TellsTheStreamOfAKernelThatDoesNotEndAndWhatWasQueuedThere) {
  watch(kHangLimit);
  wait_for_looks(1);
  gpu_.fake.hang();
  launch(3);
  std::thread waits([&] { gpu_.runtime.synchronize(lockstep::Stream{kWatched, 3}); });
  EXPECT_THAT(told(), AllOf(HasSubstr("cuda:0 hangs: stream 3 has not come to the end of kernel "
                                      "fill_pattern for 0.256 s"),
                            HasSubstr("Resume from the last checkpoint")));
  gpu_.fake.release();
  waits.join();
  EXPECT_EQ(words_[31], pattern_word(7, 31));
}

TEST_F(GpuHangWatch, TellsTheOldestStreamThatHangsAndNotOneThatWaitsForIt) {
  watch(kHangLimit);
  launch(2);  // a stream that is idle, and which comes first
  gpu_.runtime.synchronize(lockstep::Stream{kWatched, 2});
  wait_for_looks(2);
  gpu_.fake.hang();
  launch(5);
  wait_for_looks(2);
  void* const event = gpu_.runtime.create_event(0, false);
  gpu_.runtime.record(event, {kWatched, 5});
  gpu_.runtime.wait({kWatched, 1}, event);
  launch(1);
  EXPECT_THAT(told(), HasSubstr("stream 5"));
  gpu_.fake.release();
  gpu_.runtime.synchronize(0);
  gpu_.runtime.destroy_event(event);
}

TEST_F(GpuHangWatch, TellsOfACallOfTheDriverThatDoesNotReturn) {
  // The fake driver has one lock, which a callback holds.
  std::promise<void> began, goes_on;
  gpu_.runtime.add_callback({kWatched, 1}, [&] {
    began.set_value();
    goes_on.get_future().wait();
  });
  std::thread waits([&] { gpu_.runtime.synchronize(lockstep::Stream{kWatched, 1}); });
  began.get_future().wait();
  watch(kHangLimit);
  EXPECT_THAT(told(), HasSubstr("cuda:0 hangs: a call of its driver has not returned for"));
  goes_on.set_value();
  waits.join();
}

TEST_F(GpuHangWatch, MarksNothingWhileAGraphIsCaptured) {
  watch(kHangLimit);
  launch(1);
  wait_for_looks(2);
  const lockstep::Stream stream{kWatched, 1};
  gpu_.runtime.begin_capture(stream);
  launch(1);
  wait_for_looks(3);
  const CUgraphExec graph = gpu_.runtime.end_capture(stream);
  gpu_.runtime.launch_graph(stream, graph);
  wait_for_looks(3);
  gpu_.runtime.synchronize(stream);
  EXPECT_EQ(words_[31], pattern_word(7, 31));
  gpu_.runtime.destroy_graph(0, graph);
  EXPECT_THAT(gpu_.fake.misuse(), ::testing::IsEmpty());
}

TEST_F(GpuHangWatch, LeavesErrorsOfTheGpuToTheThreadsThatUseIt) {
  watch(kHangLimit);
  launch(1);
  wait_for_looks(1);
  gpu_.fake.poison(CUDA_ERROR_LAUNCH_FAILED);
  // In more looks than are needed to tell of a GPU that hangs.
  wait_for_looks(100);
  EXPECT_EQ(told_.get_future().wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_THROW(gpu_.runtime.synchronize(0), DeviceError);
}

TEST(Silence, IsCountedFromTheLastMove) {
  Silence silence(seconds(3), seconds(2));
  EXPECT_FALSE(silence.add(false, seconds(2)));
  EXPECT_FALSE(silence.add(true, seconds(2)));
  EXPECT_FALSE(silence.add(false, seconds(2)));
  EXPECT_TRUE(silence.add(false, seconds(1)));
}

TEST(Silence, IsNotCountedWhileTheProcessWasStopped) {
  Silence silence(seconds(3), seconds(1));
  EXPECT_FALSE(silence.add(false, seconds(3600)));
  EXPECT_FALSE(silence.add(false, seconds(1)));
  EXPECT_TRUE(silence.add(false, seconds(1)));
}

}  // namespace
}  // namespace lockstep::cuda
