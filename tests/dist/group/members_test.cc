#include "dist/group/members.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/group/transport_group.h"
#include "dist/rendezvous/socket.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/ddp/ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// One of the ranks of a job, in a process of its own.
class Member {
 public:
  Member(int rank, int size, const AllGatherText& all_gather) {
    Endpoint endpoint{"127.0.0.1", 0};
    if (rank == 0) (void)listen_at(endpoint);
    start_ = {.where = {.rank = rank,
                        .size = size,
                        .address = "127.0.0.1:" + all_gather(std::to_string(endpoint.port))[0],
                        .job = "job-a",
                        .secret = "open sesame"},
              .options = [](int) { return Communicator::Options(); }};
    use(tcp_communicator(start_.where));
  }

  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  /// The sum of a number of each rank.
  double sum(double own) const {
    if (group_ == nullptr) return own;
    const Tensor sum = full({1}, own, {DType::kF64, kCPU});
    group_->all_reduce(sum).wait();
    return *sum.data<double>();
  }
  /// Waits until the group has lost a rank; false if it has not.
  bool notices_loss() const {
    try {
      for (;;) (void)sum(1);
    } catch (const PeerLostError&) {
      return true;
    } catch (const DistError&) {
      return false;
    }
  }
  /// Goes on with those that are left; returns why not, or "".
  std::string go_on(
      const std::function<std::string()>& obstacle = [] { return ""; },
      std::chrono::milliseconds wait = 60s) {
    Members::Outcome outcome = members_->meet(
        {.told = "", .wait = wait, .obstacle = [&](const auto&) { return obstacle(); }});
    if (!outcome.met) return outcome.why.empty() ? "no reason" : outcome.why;
    present_.clear();
    for (const auto& each : outcome.met->present) present_.push_back(each.rank);
    start_ = outcome.met->start;
    members_.reset();
    use(outcome.met->communicator);
    return "";
  }
  /// Who was present, by their numbers before.
  const std::vector<int>& present() const { return present_; }

 private:
  void use(const std::shared_ptr<Communicator>& communicator) {
    group_ = communicator ? transport_group(communicator, "tcp") : nullptr;
    if (group_) members_ = std::make_unique<Members>(start_, *communicator, *group_);
  }

  Members::Start start_;
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<Members> members_;
  std::vector<int> present_;
};

class MembersOfAJob : public testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads in forked children";
  }
};

TEST_F(MembersOfAJob, GoOnWhicheverRankIsKilled) {
  for (const int lost : {0, 1, 2}) {
    const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
      Member member(rank, 3, all_gather);
      if (member.sum(rank) != 3) return false;
      if (rank == lost) raise(SIGKILL);
      return member.notices_loss() && member.go_on().empty() && member.present().size() == 2 &&
             member.sum(rank) == 3 - lost;
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(statuses[static_cast<size_t>(rank)], rank == lost ? SIGKILL : 0)
          << "rank " << rank << ", without rank " << lost;
    }
  }
}

TEST_F(MembersOfAJob, LoseOneAfterTheOtherDownToOne) {
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
    Member member(rank, 3, all_gather);
    if (member.sum(1) != 3) return false;
    if (rank == 0) raise(SIGKILL);
    if (!member.notices_loss() || !member.go_on().empty() || member.sum(1) != 2) return false;
    if (rank == 1) raise(SIGKILL);
    return member.notices_loss() && member.go_on().empty() && member.rank() == 0 &&
           member.sum(5) == 5;
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, SIGKILL, 0));
}

TEST_F(MembersOfAJob, GoOnWhereTheOneThatDecidesIsKilledAsWell) {
  const auto statuses = run_as_processes(4, [&](int rank, const AllGatherText& all_gather) {
    Member member(rank, 4, all_gather);
    if (member.sum(1) != 4) return false;
    if (rank == 3) raise(SIGKILL);
    if (!member.notices_loss()) return false;
    // The first is lost as it decides.
    const auto decide = [&] {
      if (rank == 0) raise(SIGKILL);
      return "";
    };
    return member.go_on(decide).empty() && member.sum(1) == 2;
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, 0, 0, SIGKILL));
}

TEST_F(MembersOfAJob, EndTogetherWhereTheyMayNotGoOn) {
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
    Member member(rank, 3, all_gather);
    if (rank == 2) raise(SIGKILL);
    return member.notices_loss() && member.go_on([] { return "too few"; }) == "too few";
  });
  EXPECT_THAT(statuses, ElementsAre(0, 0, SIGKILL));
}

TEST_F(MembersOfAJob, LeaveOutARankThatIsStoppedWhichIsAloneWhenItGoesOn) {
  const auto statuses = run_as_processes(4, [&](int rank, const AllGatherText& all_gather) {
    Member member(rank, 4, all_gather);
    const std::vector<std::string> pids = all_gather(std::to_string(getpid()));
    if (member.sum(1) != 4) return false;
    if (rank == 3) raise(SIGKILL);
    if (rank == 2) raise(SIGSTOP);
    if (!member.notices_loss()) return false;
    // The others are gone for the one that was stopped, whatever they do meanwhile.
    if (rank == 2) return member.go_on([] { return "alone"; }) == "alone";
    if (!member.go_on([] { return ""; }, 500ms).empty() || member.sum(1) != 2) return false;
    if (rank == 0) kill(std::stoi(pids[2]), SIGCONT);
    return member.present() == std::vector<int>{0, 1};
  });
  EXPECT_THAT(statuses, ElementsAre(0, 0, 0, SIGKILL));
}

}  // namespace
}  // namespace lockstep::dist
