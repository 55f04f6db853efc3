#include "dist/group/members.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/group/transport_group.h"
#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"
#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One of the ranks of a job, in a process of its own.
class Member {
 public:
  Member(int rank, int size, const AllGatherText& all_gather, int shard_size = 1) {
    Endpoint endpoint{"127.0.0.1", 0};
    if (rank == 0) (void)listen_at(endpoint);
    start_ = {.where = {.rank = rank,
                        .size = size,
                        .address = "127.0.0.1:" + all_gather(std::to_string(endpoint.port))[0],
                        .job = "job-a",
                        .secret = "open sesame"},
              .options = [](int) { return Communicator::Options(); },
              .shard_size = shard_size};
    use(tcp_communicator(start_.where));
  }

  /// A rank that is alone, and may be joined.
  Member() : start_(alone()), members_(std::make_unique<Members>(start_)) {}
  /// A process that the ranks have called, with the invitation that they have sent.
  Member(int number, OpenPort port, const std::vector<std::string>& invitation)
      : start_(alone()),
        members_(std::make_unique<Members>(start_, number, std::move(port), invitation)) {}

  /// What processes at these places need, which are expected from now on.
  std::vector<std::string> invite(const std::vector<std::string>& places) {
    std::vector<std::string> texts = members_->invitation();
    texts.insert(texts.end(), places.begin(), places.end());
    members_->expect(places);
    return texts;
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
    Members::Outcome outcome = members_->meet({.told = "",
                                               .wait = wait,
                                               .obstacle = [&](const auto&) { return obstacle(); },
                                               .arrange = arrange_});
    if (outcome.is_left_out) return "left out";
    if (!outcome.met) return outcome.why.empty() ? "no reason" : outcome.why;
    present_.clear();
    left_out_.clear();
    for (const auto& each : outcome.met->present) present_.push_back(each.rank);
    for (const auto& each : outcome.met->left_out) left_out_.push_back(each.rank);
    start_ = outcome.met->start;
    members_.reset();
    use(outcome.met->communicator);
    return "";
  }
  /// Who was present, by their numbers before.
  const std::vector<int>& present() const { return present_; }
  /// Those that came and do not go on.
  const std::vector<int>& left_out() const { return left_out_; }
  /// From now on these, of those that come, go on, by their new numbers.
  void arrange_as(const std::vector<size_t>& places) {
    arrange_ = [places](const auto&) { return places; };
  }

 private:
  static Members::Start alone() {
    return {.where = {.job = "job-a", .secret = "open sesame"},
            .options = [](int) { return Communicator::Options(); },
            .door = "127.0.0.1:1"};
  }
  void use(const std::shared_ptr<Communicator>& communicator) {
    group_ = communicator ? transport_group(communicator, "tcp") : nullptr;
    if (group_) members_ = std::make_unique<Members>(start_, *communicator, *group_);
  }

  Members::Start start_;
  std::unique_ptr<ProcessGroup> group_;
  std::unique_ptr<Members> members_;
  std::vector<int> present_;
  std::vector<int> left_out_;
  std::function<std::vector<size_t>(const std::vector<RollCall::Present>&)> arrange_;
};

/// A rank of a job that starts with so many; nothing for a process that comes later.
std::optional<Member> started(int rank, int ranks, const AllGatherText& all_gather) {
  std::optional<Member> member;
  if (rank < ranks) {
    member.emplace(rank, ranks, all_gather);
  } else {
    (void)all_gather("");  // the place of rank 0 is told to all
  }
  return member;
}

/// How processes and ranks of a test find each other: on all of them, rank 0 having invited.
class Invitation {
 public:
  Invitation(int rank, int ranks, const AllGatherText& all_gather, Member* member) {
    std::vector<std::string> places = all_gather(rank < ranks ? "" : Members::place_of(port_));
    places.erase(places.begin(), places.begin() + ranks);
    std::vector<std::string> texts;
    if (member != nullptr) texts = member->invite(places);
    std::string all;
    for (const std::string& text : texts) all += text + '\0';
    std::istringstream told(all_gather(all).front());
    for (std::string text; std::getline(told, text, '\0');) texts_.push_back(text);
  }
  Member join(int number) { return {number, std::move(port_), texts_}; }

 private:
  OpenPort port_{true};
  std::vector<std::string> texts_;
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
      (void)all_gather("");  // all have the sum
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
    (void)all_gather("");
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
    (void)all_gather("");
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

TEST_F(MembersOfAJob, GoOnInANewOrderWithoutSomeOfThoseThatAreLeft) {
  const auto statuses = run_as_processes(4, [&](int rank, const AllGatherText& all_gather) {
    Member member(rank, 4, all_gather, /*shard_size=*/2);
    if (member.sum(1) != 4) return false;
    (void)all_gather("");
    if (rank == 0) raise(SIGKILL);
    // Of ranks 1, 2 and 3 rank 2, the first of its group, decides.
    member.arrange_as({1, 2});
    bool decides = false;
    const std::string why = !member.notices_loss() ? "no loss" : member.go_on([&] {
      decides = true;
      return "";
    });
    if (rank == 1) return why == "left out" && !decides;
    return why.empty() && decides == (rank == 2) && member.rank() == rank - 2 &&
           member.present() == std::vector<int>{2, 3} && member.left_out() == std::vector<int>{1} &&
           member.sum(rank) == 5;
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, 0, 0, 0));
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
    (void)all_gather("");
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

TEST_F(MembersOfAJob, AreJoinedByProcessesThatTheyCall) {
  const auto statuses = run_as_processes(5, [&](int rank, const AllGatherText& all_gather) {
    std::optional<Member> member = started(rank, 3, all_gather);
    if (member && member->sum(1) != 3) return false;
    Invitation invitation(rank, 3, all_gather, member ? &*member : nullptr);
    if (!member) member.emplace(invitation.join(rank));
    return member->go_on().empty() && member->rank() == rank && member->sum(rank) == 10;
  });
  EXPECT_THAT(statuses, ElementsAre(0, 0, 0, 0, 0));
}

TEST_F(MembersOfAJob, AreJoinedWhenOneIsAlone) {
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
    std::optional<Member> member;
    if (rank == 0) member.emplace();
    Invitation invitation(rank, 1, all_gather, member ? &*member : nullptr);
    if (!member) member.emplace(invitation.join(rank));
    if (!member->go_on().empty() || member->sum(rank) != 3) return false;
    (void)all_gather("");
    // They have all that is needed to go on without the one that was there first.
    if (rank == 0) raise(SIGKILL);
    return member->notices_loss() && member->go_on().empty() && member->sum(1) == 2;
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, 0, 0));
}

TEST(Members, OpenTheirDoorAtTheSamePortOfTheirOwnHosts) {
  const Members alone({.where = {},
                       .options = [](int) { return Communicator::Options(); },
                       .door = "a-host-of-the-job:4000"});
  std::vector<std::string> doors;
  for (const std::string& address : host_addresses()) {
    doors.push_back(to_string(Endpoint{address, 4000}));
  }
  EXPECT_EQ(alone.doors(), doors);
  // A rank of another host, and one of the same as that.
  const std::string place = "host-b\n1234\n10.1.2.3\nfd00::7";
  const Members called({.where = {},
                        .options = [](int) { return Communicator::Options(); },
                        .door = "a-host-of-the-job:4000"},
                       2, OpenPort(false), {"key", "2", place, place, "host-c\n1\n10.1.2.4"});
  EXPECT_THAT(called.doors(), ElementsAre("10.1.2.3:4000", "[fd00::7]:4000"));
}

TEST(Members, OfOneHostHaveOneDoor) {
  const Members alone({.where = {},
                       .options = [](int) { return Communicator::Options(); },
                       .door = "127.0.0.1:4000"});
  EXPECT_THAT(alone.doors(), ElementsAre());
}

Members::Start start_alone() {
  return {.where = {.job = "job-a", .secret = "open sesame"},
          .options = [](int) { return Communicator::Options(); },
          .door = "127.0.0.1:1"};
}

TEST(Members, InviteWithThePlacesOfTheRanksAndNotOfThoseThatAreExpected) {
  Members alone(start_alone());
  const std::vector<std::string> before = alone.invitation();
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[1], "1");
  alone.expect({"host-b\n1234"});
  EXPECT_EQ(alone.invitation(), before);
}

TEST(Members, ARankThatTheOthersDecidedToGoOnWithoutDoesNotGoOn) {
  // Rank 0 is played: it tells rank 1 that rank 0 goes on alone.
  const OpenPort first(true);
  OpenPort own(true);
  const std::string place = Members::place_of(own);
  Members late(start_alone(), 1, std::move(own), {"key", "1", Members::place_of(first), place});
  std::thread decides([&] {
    const auto until = std::chrono::steady_clock::now() + 10s;
    if (!wait_for(first.listener(), false, until)) return;
    Connection connection(accept_at(first.listener()).socket, kLargestStoreMessage);
    connection.send({StoreMessage::Kind::kAnswer, 0, {1}, {"1", "0", ""}});
    connection.end_sending();
    std::string why;
    while (wait_for(connection.socket(), false, until) && connection.receive(why)) {
    }
  });
  const Members::Outcome outcome =
      late.meet({.told = "", .wait = 10s, .obstacle = [](const auto&) { return "not asked"; }});
  decides.join();
  EXPECT_FALSE(outcome.met);
  EXPECT_EQ(outcome.why, "the others go on without this rank");
}

TEST(Members, TheStoreOfThoseThatMeetLosesARankAfterTheSilenceOfTheStart) {
  Members::Start start = start_alone();
  start.silence = 1ms;  // which no store takes
  Members leader(start);
  OpenPort port(true);
  const std::string place = Members::place_of(port);
  std::vector<std::string> invitation = leader.invitation();
  invitation.push_back(place);
  leader.expect({place});
  Members called(start, 1, std::move(port), invitation);
  const Members::Terms terms{
      .told = "", .wait = 10s, .obstacle = [](const auto&) { return std::string(); }};
  Members::Outcome of_called;
  std::thread other([&] { of_called = called.meet(terms); });
  const Members::Outcome of_leader = leader.meet(terms);
  other.join();
  EXPECT_FALSE(of_leader.met);
  EXPECT_FALSE(of_called.met);
  EXPECT_THAT(of_leader.why, HasSubstr("a rank cannot be lost after 1 ms of silence"));
  EXPECT_EQ(of_called.why, of_leader.why);
}

TEST(Members, WhatIsNoInvitationOfThisProcessIsRefused) {
  const auto expect_refused = [](const std::vector<std::string>& invitation,
                                 const std::string& why) {
    expect_error<DistError>(
        [&] {
          const Members called(
              {.where = {}, .options = [](int) { return Communicator::Options(); }, .door = ""}, 1,
              OpenPort(true), invitation);
        },
        "[join] the invitation " + why);
  };
  expect_refused({}, "lacks the ranks' places");
  expect_refused({"key"}, "lacks the ranks' places");
  const std::string of_one = " ranks, and this process as number 1";
  const std::string place = "host-b\n1234";
  expect_refused({"key", "1", place}, "has places of 1 ranks and processes: expected 1" + of_one);
  expect_refused({"key", "2", place, place}, "has places of 2 ranks and processes: expected 2");
  for (const char* size : {"0", "-1", "one"}) {
    expect_refused({"key", size, place, place}, "has places of 2 ranks and processes");
  }
}

TEST_F(MembersOfAJob, GoOnWithoutAProcessThatIsLostAsItJoins) {
  const auto statuses = run_as_processes(4, [&](int rank, const AllGatherText& all_gather) {
    std::optional<Member> member = started(rank, 2, all_gather);
    Invitation invitation(rank, 2, all_gather, member ? &*member : nullptr);
    if (rank == 2) raise(SIGKILL);
    if (!member) member.emplace(invitation.join(rank));
    return member->go_on().empty() && member->present() == std::vector<int>{0, 1, 3} &&
           member->sum(1) == 3;
  });
  EXPECT_THAT(statuses, ElementsAre(0, 0, SIGKILL, 0));
}

TEST_F(MembersOfAJob, AreJoinedWhereTheOneThatDecidesIsKilled) {
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
    std::optional<Member> member = started(rank, 2, all_gather);
    Invitation invitation(rank, 2, all_gather, member ? &*member : nullptr);
    if (!member) member.emplace(invitation.join(rank));
    const auto decide = [&] {
      if (rank == 0) raise(SIGKILL);
      return "";
    };
    return member->go_on(decide).empty() && member->present() == std::vector<int>{1, 2} &&
           member->sum(1) == 2;
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, 0, 0));
}

TEST_F(MembersOfAJob, AreGoneForAProcessThatWasCalledBeforeALoss) {
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText& all_gather) {
    std::optional<Member> member = started(rank, 2, all_gather);
    if (member && member->sum(1) != 2) return false;
    // The leader has called the process, and is lost before the others have heard of it.
    Invitation invitation(rank, 2, all_gather, rank == 0 ? &*member : nullptr);
    if (rank == 0) raise(SIGKILL);
    if (rank == 1) return member->notices_loss() && member->go_on().empty() && member->sum(5) == 5;
    Member late = invitation.join(rank);
    return late.go_on([] { return "nobody is there"; }) == "nobody is there";
  });
  EXPECT_THAT(statuses, ElementsAre(SIGKILL, 0, 0));
}

}  // namespace
}  // namespace lockstep::dist
