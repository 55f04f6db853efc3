#include "dist/transport/thread_transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/core/expect_error.h"
#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ThreadTransportTest : public testing::Test {
 protected:
  /// Rank 0 sends `data_` to rank 1 with this tag.
  void send(uint64_t tag) { ranks_[0]->send(1, tag, data_.data(), data_.size(), sent_); }
  void receive(uint64_t tag, size_t bytes = 100) {
    ranks_[1]->receive(0, tag, place_.data(), bytes, received_);
  }

  std::vector<std::unique_ptr<Transport>> ranks_ = thread_transports(3);
  std::vector<std::byte> data_ = contents(1, 100);
  std::vector<std::byte> place_ = std::vector<std::byte>(100);
  Message sent_, received_;
};

TEST_F(ThreadTransportTest, AMessageThatItsReceiverHasNotAskedForWhenItEndsFails) {
  send(5);
  ranks_[1]->progress();  // takes it in
  ranks_[1].reset();
  EXPECT_TRUE(ranks_[0]->progress());
  EXPECT_EQ(sent_.state, Message::State::kFailed);
  EXPECT_EQ(sent_.error, "rank 1 has ended");
}

TEST_F(ThreadTransportTest, CopiesAMessageWhicheverSideComesFirst) {
  EXPECT_EQ(ranks_[1]->rank(), 1);
  EXPECT_EQ(ranks_[1]->size(), 3);
  for (const bool is_early : {false, true}) {
    if (is_early) send(5);
    receive(5);
    if (!is_early) send(5);
    EXPECT_EQ(sent_.state, Message::State::kPending);
    EXPECT_TRUE(ranks_[1]->progress());
    EXPECT_EQ(received_.state, Message::State::kDone);
    EXPECT_EQ(received_.bytes, 100u);
    EXPECT_EQ(place_, data_);
    EXPECT_FALSE(ranks_[1]->progress());
    EXPECT_TRUE(ranks_[0]->progress());
    EXPECT_EQ(sent_.state, Message::State::kDone);
    EXPECT_EQ(sent_.bytes, 100u);
    EXPECT_FALSE(ranks_[0]->progress());
    place_.assign(100, std::byte{0});
  }
  send(6);
  ranks_[1]->progress();
  receive(6);  // ends at once, which the next call tells
  EXPECT_EQ(received_.state, Message::State::kDone);
  EXPECT_TRUE(ranks_[1]->progress());
  EXPECT_FALSE(ranks_[1]->progress());
}

TEST_F(ThreadTransportTest, AMessageLongerThanItsPlaceFailsThereAlone) {
  receive(5, 99);
  send(5);
  ranks_[1]->progress();
  EXPECT_EQ(received_.state, Message::State::kFailed);
  EXPECT_EQ(received_.error, "rank 0 sent 100 bytes where 99 were expected");
  EXPECT_EQ(received_.bytes, 100u);
  EXPECT_EQ(place_[0], std::byte{0});
  ranks_[0]->progress();
  EXPECT_EQ(sent_.state, Message::State::kDone);
}

TEST_F(ThreadTransportTest, WhatIsCancelledIsNotMatched) {
  Message next;
  receive(5);
  ranks_[1]->cancel(received_);
  EXPECT_EQ(received_.state, Message::State::kIdle);
  std::vector<std::byte> other(100);
  ranks_[1]->receive(0, 5, other.data(), 100, next);
  send(5);
  ranks_[0]->cancel(sent_);
  EXPECT_EQ(sent_.state, Message::State::kIdle);
  data_ = contents(2, 100);
  send(5);
  EXPECT_TRUE(ranks_[1]->progress());
  EXPECT_EQ(next.state, Message::State::kDone);
  EXPECT_EQ(other, contents(2, 100)) << "the message that was not taken back";
  EXPECT_EQ(place_[0], std::byte{0});
  ranks_[0]->progress();
  EXPECT_EQ(sent_.state, Message::State::kDone);
}

TEST_F(ThreadTransportTest, MessagesWithARankThatHasEndedFail) {
  Message early, other;
  ranks_[0]->receive(1, 7, place_.data(), 100, early);
  ranks_[0]->receive(2, 7, place_.data(), 100, other);
  send(5);
  ranks_[1].reset();
  EXPECT_TRUE(ranks_[0]->progress());
  for (const Message* each : {&early, &sent_}) {
    EXPECT_EQ(each->state, Message::State::kFailed);
    EXPECT_EQ(each->error, "rank 1 has ended");
  }
  EXPECT_EQ(other.state, Message::State::kPending);
  send(6);
  EXPECT_EQ(sent_.state, Message::State::kFailed);
  ranks_[0]->receive(1, 8, place_.data(), 100, early);
  EXPECT_EQ(early.state, Message::State::kFailed);
  EXPECT_TRUE(ranks_[0]->progress());
}

TEST_F(ThreadTransportTest, WhatARankSentBeforeItsEndIsWithdrawn) {
  send(5);
  ranks_[0].reset();
  receive(5);
  EXPECT_TRUE(ranks_[1]->progress());
  EXPECT_EQ(received_.state, Message::State::kFailed);
  EXPECT_EQ(place_[0], std::byte{0});
}

TEST_F(ThreadTransportTest, ASleepEndsWithAMessageAnEndOrAWake) {
  const auto start = Clock::now();
  ranks_[1]->wake();
  ranks_[1]->sleep(20s);
  send(5);
  ranks_[1]->sleep(20s);
  receive(5);
  ranks_[1]->progress();
  ranks_[0]->sleep(20s);  // its message was copied
  ranks_[2].reset();
  ranks_[0]->sleep(20s);
  ranks_[1]->sleep(20s);
  std::thread waker([&] { ranks_[1]->wake(); });
  ranks_[1]->sleep(20s);
  waker.join();
  EXPECT_LT(Clock::now() - start, 10s);
  const auto idle = Clock::now();
  ranks_[0]->sleep(5ms);
  EXPECT_GE(Clock::now() - idle, 4ms);
}

TEST(ThreadTransports, RandomMessagesArriveInOrderAndWhole) {
  auto ranks = thread_transports(3);
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&rank] {
      for (uint32_t seed = 0; seed < 5; ++seed) exchange_randomly(*rank, seed, 200, 100'000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadTransports, AreAtLeastOne) {
  expect_error<DistError>([] { (void)thread_transports(0); },
                          "[thread_transports] expected at least 1 rank, got 0.");
}

}  // namespace
}  // namespace lockstep::dist
