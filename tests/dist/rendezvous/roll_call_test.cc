#include "dist/rendezvous/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/rendezvous/open_port.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"
#include "tests/dist/rendezvous/raw_client.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Present = std::vector<RollCall::Present>;

/// Longer than any test takes: nobody is to be waited for.
constexpr auto kLong = 60s;

/// The ranks of a job, on threads.
class RollRanks {
 public:
  explicit RollRanks(int size, const std::vector<std::string>& keys = {},
                     const std::vector<int>& order = {})
      : outcomes_(size) {
    const std::string key = random_secret();
    std::vector<std::string> places;
    for (int rank = 0; rank < size; ++rank) {
      const auto index = static_cast<size_t>(rank);
      ranks_.push_back(std::make_unique<RollCall>(rank, keys.empty() ? key : keys[index], true));
      places.push_back(ranks_.back()->description());
    }
    for (const auto& each : ranks_) {
      each->find_others_at(places, std::vector<bool>(static_cast<size_t>(size), true), order);
    }
  }
  ~RollRanks() { join(); }

  RollCall& operator[](int rank) { return *ranks_[static_cast<size_t>(rank)]; }
  void lose(int rank) { ranks_[static_cast<size_t>(rank)].reset(); }

  static RollCall::Decision go_on(const Present&) { return {true, "a port"}; }
  /// Begins a call of the roll on some ranks; each tells "state RANK".
  void call(const std::vector<int>& ranks, std::chrono::milliseconds wait = kLong,
            const RollCall::Decide& decide = go_on) {
    if (threads_.empty()) begin_ = std::chrono::steady_clock::now();
    for (const int rank : ranks) {
      threads_.emplace_back([this, rank, wait, decide] {
        outcomes_[static_cast<size_t>(rank)] =
            (*this)[rank].call("state " + std::to_string(rank), wait, [&](const Present& present) {
              decided_ = rank;
              return decide(present);
            });
      });
    }
  }
  void join() {
    if (threads_.empty()) return;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    EXPECT_LT(std::chrono::steady_clock::now() - begin_, kLong) << "somebody was waited for";
  }

  const RollCall::Outcome& outcome(int rank) const { return outcomes_[static_cast<size_t>(rank)]; }
  /// The numbers of those who were present as a rank has heard.
  std::vector<int> heard_by(int rank) const {
    std::vector<int> ranks;
    for (const auto& each : outcome(rank).present) ranks.push_back(each.rank);
    return ranks;
  }
  /// The rank that decided last.
  int decided() const { return decided_; }

 private:
  std::vector<std::unique_ptr<RollCall>> ranks_;
  std::vector<RollCall::Outcome> outcomes_;
  std::vector<std::thread> threads_;
  std::chrono::steady_clock::time_point begin_;  ///< of the first call that has not been joined
  std::atomic<int> decided_ = -1;
};

TEST(RollCall, ThoseThatAreLeftHearWhatTheLowestDecides) {
  RollRanks ranks(4);
  ranks.lose(1);
  ranks.call({3, 2, 0});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 0);
  for (const int rank : {0, 2, 3}) {
    EXPECT_TRUE(ranks.outcome(rank).decision.goes_on);
    EXPECT_EQ(ranks.outcome(rank).decision.text, "a port");
    EXPECT_THAT(ranks.heard_by(rank), ElementsAre(0, 2, 3));
    EXPECT_EQ(ranks.outcome(rank).present[1].told, "state 2");
    EXPECT_EQ(ranks.outcome(rank).caller_host, rank == 0 ? "" : "127.0.0.1");
  }
}

TEST(RollCall, TheFirstOfAnOrderDecides) {
  const std::vector<int> order = {0, 2, 1, 3};
  RollRanks ranks(4, {}, order);
  ranks.call({1, 3, 2, 0});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 0);
  ranks.lose(0);
  ranks.call({1, 2, 3});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 2);
  for (const int rank : {1, 2, 3}) EXPECT_THAT(ranks.heard_by(rank), ElementsAre(1, 2, 3));
  ranks.lose(2);
  ranks.call({1, 3});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 1);
}

TEST(RollCall, ALowerRankThatCameLaterHasItsTimeToDecide) {
  RollRanks ranks(3);
  // Rank 2 stands but does not call. Rank 1 has waited for it when rank 0 still does.
  ranks.call({1}, 600ms);
  std::this_thread::sleep_for(100ms);
  ranks.call({0}, 600ms);
  ranks.join();
  EXPECT_EQ(ranks.decided(), 0);
  for (const int rank : {0, 1}) EXPECT_THAT(ranks.heard_by(rank), ElementsAre(0, 1));
}

TEST(RollCall, OneThatCameToAnEarlierRollAndWentOrIsNoOtherRankIsNotPresent) {
  const std::string key = random_secret();
  RollCall first(0, key, true), second(1, key, true);
  const std::vector<std::string> places = {first.description(), second.description()};
  {
    const Descriptor socket = connect_raw("127.0.0.1:" + places[0]);
    send_raw(socket, encode({StoreMessage::Kind::kHello, 0, {1}, {"lockstep-roll-1", key, "old"}}));
  }
  // Others know the key, but say that they are this rank, or one that there is not.
  std::vector<Descriptor> others;
  for (const int64_t rank : {int64_t{0}, int64_t{2}, int64_t{-1}}) {
    others.push_back(connect_raw("127.0.0.1:" + places[0]));
    send_raw(others.back(),
             encode({StoreMessage::Kind::kHello, 0, {rank}, {"lockstep-roll-1", key, "other"}}));
  }
  first.find_others_at(places, {true, true});
  const RollCall::Outcome outcome = first.call("state 0", 200ms, RollRanks::go_on);
  ASSERT_EQ(outcome.present.size(), 1u) << "rank 1 stands, and does not call";
  EXPECT_EQ(outcome.present[0].rank, 0);
}

TEST(RollCall, TheNextOneDecidesWhereTheLowestRanksAreLost) {
  RollRanks ranks(5);
  for (const int rank : {0, 1, 3}) ranks.lose(rank);
  ranks.call({2, 4});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 2);
  EXPECT_THAT(ranks.heard_by(2), ElementsAre(2, 4));
  EXPECT_THAT(ranks.heard_by(4), ElementsAre(2, 4));
}

TEST(RollCall, ARankThatIsLostBeforeItComesHoldsUpNobody) {
  // Rank 0 listens and would be waited for.
  RollRanks ranks(3);
  ranks.call({1, 2});
  ranks.lose(0);
  ranks.join();
  EXPECT_EQ(ranks.decided(), 1);
  EXPECT_THAT(ranks.heard_by(2), ElementsAre(1, 2));
}

TEST(RollCall, TheLowestWaitsForARankThatStillComputes) {
  RollRanks ranks(3);
  std::atomic<bool> late = false;
  ranks.call({0, 1}, kLong, [&](const Present&) {
    EXPECT_TRUE(late) << "nobody had waited for rank 2";
    return RollCall::Decision{true, ""};
  });
  late = true;
  ranks.call({2});
  ranks.join();
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(0, 1, 2));
}

TEST(RollCall, ARankThatDoesNotComeIsLeftOutAndIsAloneLater) {
  RollRanks ranks(3);
  ranks.call({1, 2}, 50ms);
  ranks.join();
  EXPECT_EQ(ranks.decided(), 1);
  EXPECT_THAT(ranks.heard_by(2), ElementsAre(1, 2));
  ranks.lose(1);
  ranks.lose(2);
  ranks.call({0}, kLong, [](const Present& present) {
    EXPECT_EQ(present.size(), 1U);
    return RollCall::Decision{false, "too few"};
  });
  ranks.join();
  EXPECT_FALSE(ranks.outcome(0).decision.goes_on);
}

TEST(RollCall, WhyTheRanksDoNotGoOnIsToldToAll) {
  RollRanks ranks(3);
  ranks.call({0, 1, 2}, kLong, [](const Present&) { return RollCall::Decision{false, "too few"}; });
  ranks.join();
  for (const int rank : {0, 1, 2}) {
    EXPECT_FALSE(ranks.outcome(rank).decision.goes_on);
    EXPECT_EQ(ranks.outcome(rank).decision.text, "too few");
    EXPECT_THAT(ranks.outcome(rank).present, IsEmpty());
  }
}

TEST(RollCall, IsCalledAgainWhereWhatWasDecidedHasFailed) {
  RollRanks ranks(3);
  ranks.call({0, 1, 2});
  ranks.join();
  EXPECT_THAT(ranks.heard_by(2), ElementsAre(0, 1, 2));
  ranks.lose(0);
  ranks.call({1, 2});
  ranks.join();
  EXPECT_EQ(ranks.decided(), 1);
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(1, 2));
  EXPECT_THAT(ranks.heard_by(2), ElementsAre(1, 2));
}

TEST(RollCall, ARankThatLeavesIsNotWaitedFor) {
  RollRanks ranks(3);
  ranks[0].leave();
  ranks.call({1, 2});
  ranks.join();
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(1, 2));
}

TEST(RollCall, OneWithAnotherKeyIsShutOut) {
  RollRanks ranks(3, {"the key", "the key", "another key"});
  std::atomic<int> alone = 0;
  const auto decide = [&](const Present& present) {
    if (present.size() == 1) {
      ++alone;
      ranks[2].leave();  // nobody is to wait for it
    }
    return RollCall::Decision{present.size() > 1, "alone"};
  };
  ranks.call({0, 1, 2}, kLong, decide);
  ranks.join();
  EXPECT_THAT(ranks.heard_by(0), ElementsAre(0, 1));
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(0, 1));
  EXPECT_FALSE(ranks.outcome(2).decision.goes_on);
  EXPECT_EQ(alone, 1);
}

TEST(RollCall, StrangersAreShutOutAndDelayNobody) {
  RollRanks ranks(2);
  const Endpoint place = endpoints_of(ranks[0].description(), true).front();
  std::vector<Descriptor> strangers;
  for (const char* text : {"", "GET / HTTP/1.1\r\nHost: a-host-of-nobody\r\n\r\n......"}) {
    Descriptor socket = connect_to(place, std::chrono::steady_clock::now() + 5s).socket;
    ASSERT_TRUE(socket);
    EXPECT_GE(::send(socket.get(), text, std::strlen(text), MSG_NOSIGNAL), 0);
    strangers.push_back(std::move(socket));
  }
  ranks.call({0, 1});
  ranks.join();
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(0, 1));
}

TEST(RollCall, ARankAtWhosePortAnotherProgramListensIsNotWaitedFor) {
  RollRanks ranks(2);
  ranks.lose(0);
  const OpenPort program(true);
  ranks[1].find_others_at({program.description(), ranks[1].description()}, {true, true});
  ranks.call({1});
  ASSERT_TRUE(wait_for(program.listener(), false, std::chrono::steady_clock::now() + kLong));
  const Accepted caller = accept_at(program.listener());
  ASSERT_TRUE(caller.socket);
  send_raw(caller.socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
  ranks.join();  // while the connection stands
  EXPECT_THAT(ranks.heard_by(1), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::dist
