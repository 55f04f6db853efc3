// What a communicator says to the control of its job, and does with what that tells it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "dist/group/communicator.h"
#include "dist/group/thread_control.h"
#include "dist/group/transport_group.h"
#include "dist/transport/thread_transport.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// A rank's control that notes calls and passes them on, but may keep failures to itself.
class NotedControl final : public JobControl {
 public:
  struct Notes {
    std::mutex lock;
    std::vector<std::string> calls;
    bool tells_of_failures = true;
  };

  NotedControl(std::unique_ptr<JobControl> control, Notes& notes)
      : control_(std::move(control)), notes_(notes) {}
  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  void fail(const std::string& text) noexcept override {
    note("fail");
    control_->fail(text);
  }
  std::optional<Failure> failure() const override { return control_->failure(); }
  void leave() noexcept override {
    note("leave");
    control_->leave();
  }
  void post(int to, std::string message) noexcept override {
    control_->post(to, std::move(message));
  }
  void listen(Listener listener) override {
    if (!notes_.tells_of_failures) listener.on_failure = nullptr;
    control_->listen(std::move(listener));
  }

 private:
  void note(const char* call) {
    const std::lock_guard guard(notes_.lock);
    notes_.calls.emplace_back(call);
  }

  std::unique_ptr<JobControl> control_;
  Notes& notes_;
};

/// Rank 0 of two has a communicator; rank 1 is played by the test.
class WithAPlayedRank : public testing::Test {
 protected:
  void start() {
    const auto connections = std::make_shared<Connections>(Connections{
        std::move(transports_[0]), std::make_unique<NotedControl>(job_.control(0), notes_)});
    communicator_ = std::make_shared<Communicator>(
        [connections] { return std::move(*connections); }, Communicator::Options());
    group_ = transport_group(communicator_, "thread");
  }
  void TearDown() override {
    other_->leave();
    group_.reset();
  }

  NotedControl::Notes notes_;
  ThreadJob job_{2};
  std::vector<std::unique_ptr<Transport>> transports_ = thread_transports(2);
  std::unique_ptr<JobControl> other_ = job_.control(1);
  std::shared_ptr<Communicator> communicator_;
  std::unique_ptr<ProcessGroup> group_;
};

TEST_F(WithAPlayedRank, AFailureHereIsTheJobsWhereAnotherRankFailedFirst) {
  notes_.tells_of_failures = false;
  start();
  other_->fail("no luck");
  expect_error<PeerLostError>([&] { group_->barrier({.timeout = 50ms}).wait(); },
                              "[dist] rank 1 failed: no luck");
}

TEST_F(WithAPlayedRank, AReasonThatComesAfterTheEndOfTheConnectionIsTheFailure) {
  start();
  const Work work = group_->barrier();
  transports_[1].reset();
  std::this_thread::sleep_for(50ms);  // the communicator notices the end meanwhile
  other_->fail("no luck");
  expect_error<PeerLostError>([&] { work.wait(); }, "[dist] rank 1 failed: no luck");
}

TEST_F(WithAPlayedRank, AnEndWithoutAReasonIsAFailureWithinASecond) {
  start();
  const Work work = group_->barrier();
  transports_[1].reset();
  expect_error<PeerLostError>([&] { work.wait(); }, "[barrier] barrier #0 in group world",
                              "rank 1 has ended");
}

TEST_F(WithAPlayedRank, AStopIsToldBeforeTheRankLeavesWithoutWaiting) {
  start();
  communicator_->stop();
  const std::lock_guard guard(notes_.lock);
  EXPECT_THAT(notes_.calls, ElementsAre("fail", "leave"));
  ASSERT_TRUE(other_->failure());
  EXPECT_THAT(other_->failure()->text, HasSubstr("another rank was asked to stop"));
}

TEST(Comparing, AsksAllRanksThatAreNamed) {
  std::vector<std::shared_ptr<Communicator>> communicators = thread_communicators(3);
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (const auto& each : communicators) groups.push_back(transport_group(each, "thread"));
  const Signature called{.group = 77, .sequence = 3, .kind = OpKind::kAllReduce, .count = 10};
  Signature other = called;
  other.count = 11;
  communicators[1]->recorder().queued(called, "other");
  communicators[2]->recorder().queued(other, "other");
  communicators[0]->compare(called, std::vector<int>{1, 2});
  expect_error<MismatchError>([&] { groups[0]->barrier({.timeout = 10s}).wait(); },
                              "rank 0 called all_reduce #3", "rank 2 called all_reduce #3 of 11");
}

}  // namespace
}  // namespace lockstep::dist
