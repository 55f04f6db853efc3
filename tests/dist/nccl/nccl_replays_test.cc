// Replays of captured graphs that have operations of a group. The graph is played here: what a
// capture calls runs at once, and a replay is what the test queues.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "core/base/scoped_value.h"
#include "core/device/active_capture.h"
#include "core/device/replay_listener.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

/// A graph on the host device.
class PlayedGraph {
 public:
  void capture(const std::function<void()>& work) {
    ActiveCapture capture;
    capture.stream = current_stream(kHostDevice);
    capture.listeners = &listeners_;
    const ScopedValue<const ActiveCapture*> scope(detail::thread_capture, &capture);
    work();
  }
  void replay(std::function<void()> work) {
    const Stream stream = current_stream(kHostDevice);
    listeners_.before_replay(stream);
    stream.add_callback(std::move(work));
    listeners_.after_replay(stream);
  }

 private:
  ReplayListeners listeners_;
};

TEST(NcclReplays, OneThatHangsFailsTheJobAndNamesWhatTheGraphHas) {
  FakeNccl fake;
  std::atomic<bool> hangs = true;
  const auto errors = run_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    PlayedGraph graph;
    group.set_timeout(50ms);
    graph.capture([&] {
      group.all_reduce(host_ones(3)).wait();
      group.all_gather(host_ones(3), host_ones(3)).wait();
    });
    group.set_timeout(30s);
    graph.replay([] {});
    graph.replay([&] {
      while (hangs) std::this_thread::sleep_for(1ms);
    });
    try {
      // An operation of its own stream ends; the replay is what fails the job.
      for (;;) group.barrier().synchronize();
    } catch (const TimeoutError&) {
      expect_error<TimeoutError>([&] { graph.replay([] {}); },
                                 "[all_reduce] the replay of a graph");
      hangs = false;
      throw;
    }
  });
  ASSERT_TRUE(errors[0]);
  expect_error<TimeoutError>([&] { std::rethrow_exception(errors[0]); },
                             "[all_reduce] the replay of a graph with all_reduce #");
  expect_error<TimeoutError>([&] { std::rethrow_exception(errors[0]); },
                             "(with 1 more) did not end within 0.05 s");
}

TEST(NcclReplays, OfAGraphThatOutlivesTheGroupAreNotWatched) {
  FakeNccl fake;
  PlayedGraph graph;
  all_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
    graph.capture([&] { group.all_reduce(host_ones(3)).wait(); });
    graph.replay([] {});
    current_stream(kHostDevice).synchronize();
  });
  EXPECT_NO_THROW(graph.replay([] {}));
}

}  // namespace
}  // namespace lockstep::dist
