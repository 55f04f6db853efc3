// What a rank's communicator does beside the operations of its groups.

#include "dist/group/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "dist/flight/flight_log.h"
#include "dist/group/failure.h"
#include "dist/group/thread_control.h"
#include "dist/group/transport_group.h"
#include "dist/transport/thread_transport.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class CommunicatorTest : public testing::Test {
 protected:
  void start(const Communicator::Options& options = {}) {
    communicators_ = thread_communicators(2, options);
    for (const auto& each : communicators_) groups_.push_back(transport_group(each, "thread"));
  }
  /// Error of a barrier that rank 0 alone comes to.
  std::exception_ptr error_of_rank_0() {
    try {
      groups_[0]->barrier().wait();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  /// Ends both ranks at once, as each waits for the other.
  void TearDown() override {
    std::thread other([this] {
      groups_[1].reset();
      communicators_[1].reset();
    });
    groups_[0].reset();
    communicators_[0].reset();
    other.join();
  }

  const train::TemporaryDirectory folder_;
  std::vector<std::shared_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;
};

TEST_F(CommunicatorTest, AStopEndsTheOthersWithoutARecord) {
  start({.flight_folder = folder_.path()});
  communicators_[1]->stop();
  expect_error<StoppedError>([&] { std::rethrow_exception(error_of_rank_0()); },
                             "another rank was asked to stop.\nTold by rank 1.");
  EXPECT_TRUE(is_stop(communicators_[0]->failure()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "flight.rank0.json"));
}

TEST_F(CommunicatorTest, AnAbortIsTheFailureOfBothAndIsRecorded) {
  start({.flight_folder = folder_.path()});
  EXPECT_FALSE(communicators_[0]->failure());
  communicators_[0]->abort("no luck");
  expect_error<PeerLostError>([&] { std::rethrow_exception(error_of_rank_0()); },
                              "[dist] this rank failed: no luck");
  expect_error<PeerLostError>([&] { groups_[1]->barrier().wait(); },
                              "[dist] rank 0 failed: no luck");
  const std::filesystem::path record = folder_ / "flight.rank1.json";
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!std::filesystem::exists(record) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_THAT(read_flight_log(record).reason, HasSubstr("rank 0 failed: no luck"));
}

TEST_F(CommunicatorTest, AFolderThatIsGivenAfterTheFailureGetsItsRecordOnce) {
  start();
  communicators_[0]->abort("no luck");
  EXPECT_TRUE(error_of_rank_0());
  communicators_[0]->set_flight_folder(folder_ / "first");
  EXPECT_THAT(read_flight_log(folder_ / "first" / "flight.rank0.json").reason,
              HasSubstr("no luck"));
  communicators_[0]->set_flight_folder(folder_ / "second");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "second"));
}

TEST_F(CommunicatorTest, AnErrorThatUnwindsAGroupIsTheReasonThatTheOthersAreTold) {
  start();
  try {
    const std::unique_ptr<ProcessGroup> group = std::move(groups_[1]);
    throw std::runtime_error("no data");
  } catch (const std::runtime_error&) {
  }
  expect_error<PeerLostError>(
      [&] { std::rethrow_exception(error_of_rank_0()); },
      "[dist] rank 1 failed: an error on this rank ended the group \"world\"");
}

TEST_F(CommunicatorTest, OperationsOfOtherLibrariesAreComparedByTheirRecords) {
  start();
  Signature signature{.group = 77, .sequence = 3, .kind = OpKind::kAllReduce, .count = 10};
  communicators_[1]->recorder().queued(signature, "other");
  communicators_[0]->compare(signature, std::vector<int>{1});
  signature.sequence = 4;
  communicators_[0]->compare(signature, std::vector<int>{1});  // not called yet
  std::thread other([&] { groups_[1]->barrier().wait(); });
  groups_[0]->barrier().wait();
  other.join();
  EXPECT_FALSE(communicators_[0]->failure());
  signature.sequence = 3;
  signature.count = 11;
  communicators_[0]->compare(signature, std::vector<int>{1});
  expect_error<MismatchError>(
      [&] { std::rethrow_exception(error_of_rank_0()); },
      "[all_reduce] ranks do not agree on operation #3 of group other: rank 0 called all_reduce #3 "
      "of 11 uint8, sum, rank 1 called all_reduce #3 of 10 uint8, sum. All ranks must call the "
      "same operations in the same order.");
}

TEST_F(CommunicatorTest, AStartIsNamedAlikeOnAllItsRanks) {
  start();
  EXPECT_EQ(communicators_[0]->start_id(), communicators_[1]->start_id());
  EXPECT_EQ(communicators_[0]->start_id().size(), 32u);
  EXPECT_EQ(communicators_[0]->recorder().groups().at(0).name, "world");
  EXPECT_EQ(communicators_[0]->next_group_index(), 1u);
}

/// Passes calls on to another control, and says at its end whether somebody listens to it.
class WatchedControl final : public JobControl {
 public:
  WatchedControl(std::unique_ptr<JobControl> inner, std::optional<bool>& has_listener_at_end)
      : inner_(std::move(inner)), has_listener_at_end_(has_listener_at_end) {}
  ~WatchedControl() override { has_listener_at_end_ = has_listener_; }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void fail(const std::string& text) noexcept override { inner_->fail(text); }
  std::optional<Failure> failure() const override { return inner_->failure(); }
  void leave() noexcept override { inner_->leave(); }
  void post(int to, std::string message) noexcept override { inner_->post(to, std::move(message)); }
  void listen(Listener listener) override {
    has_listener_ = listener.on_message != nullptr || listener.on_failure != nullptr;
    inner_->listen(std::move(listener));
  }

 private:
  const std::unique_ptr<JobControl> inner_;
  std::optional<bool>& has_listener_at_end_;
  bool has_listener_ = false;
};

TEST(ACommunicatorThatEnds, NoLongerListensToItsControl) {
  std::optional<bool> has_listener_at_end;
  {
    ThreadJob job(1);
    const auto connections = std::make_shared<Connections>(
        Connections{std::move(thread_transports(1)[0]),
                    std::make_unique<WatchedControl>(job.control(0), has_listener_at_end)});
    const Communicator communicator([connections] { return std::move(*connections); }, {});
  }
  EXPECT_EQ(has_listener_at_end, false);
}

TEST(ATimeout, SaysWhatDidNotEndAndWhoIsMissing) {
  std::atomic<bool> over = false;
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    group.barrier().wait();
    while (group.rank() == 1 && !over) std::this_thread::sleep_for(1ms);
    try {
      group.all_reduce(cpu_ones(64), {}, {.timeout = 600ms}).wait();
    } catch (...) {
      over = true;
      throw;
    }
  });
  EXPECT_EQ(text_of(errors[0]),
            "[all_reduce] all_reduce #1 of 64 float32, sum in group world did not end within 0.6 "
            "s; rank 1 has not come to it: the last it called is #0. Its time is set with the "
            "group's timeout.");
  EXPECT_EQ(text_of(errors[1]), text_of(errors[0]) + "\nTold by rank 0.");
}

}  // namespace
}  // namespace lockstep::dist
