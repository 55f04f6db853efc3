// Both ends of a channel in this thread, step by step.

#include "dist/transport/shm_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

constexpr size_t kRing = 16 << 10;
/// Bytes that may be on their way without a receive.
constexpr size_t kEarly = 2 * kRing;
constexpr size_t kHeader = 32;

class ShmChannelTest : public testing::Test {
 protected:
  /// Lets each end move what it can, several times.
  void go_on() {
    for (int i = 0; i < 20; ++i) {
      near_.progress();
      far_.progress();
    }
  }
  void send(Sending& one, uint64_t tag, size_t bytes) {
    one.data = contents(bytes, bytes);
    near_.send(tag, one.data.data(), bytes, one.message);
  }
  void receive(Sending& one, uint64_t tag, size_t bytes) {
    one.data.assign(bytes, std::byte{0});
    far_.receive(tag, one.data.data(), bytes, one.message);
  }
  static Message::State state(const Sending& one) { return one.message.state; }
  void make_ring() {
    if (memory_is_short_) throw OutOfMemoryError("no memory for a ring");
    ++rings_made_;
  }

  ShmLink out_, in_;
  alignas(64) std::array<std::byte, kRing> out_ring_{}, in_ring_{};
  bool memory_is_short_ = false;
  int rings_made_ = 0;
  int rung_by_near_ = 0;
  int rung_by_far_ = 0;
  ShmChannel near_{{&out_, out_ring_.data()},
                   {&in_, in_ring_.data()},
                   kRing,
                   [this] { make_ring(); },
                   [this] { ++rung_by_near_; }};
  ShmChannel far_{{&in_, in_ring_.data()},
                  {&out_, out_ring_.data()},
                  kRing,
                  [this] { make_ring(); },
                  [this] { ++rung_by_far_; }};
  Sending sent_, next_, got_, other_;

  static constexpr auto kPending = Message::State::kPending;
  static constexpr auto kDone = Message::State::kDone;
  static constexpr auto kFailed = Message::State::kFailed;
  static constexpr auto kIdle = Message::State::kIdle;
};

TEST_F(ShmChannelTest, AMessageIsSentAtOnceAndRingsThePeer) {
  EXPECT_TRUE(near_.is_idle());
  EXPECT_FALSE(near_.is_ready());
  send(sent_, 7, 100);
  EXPECT_EQ(state(sent_), kDone) << "it is in the ring";
  EXPECT_EQ(sent_.message.bytes, 100u);
  EXPECT_EQ(rung_by_near_, 1);
  EXPECT_TRUE(near_.is_ready()) << "a message has ended";
  EXPECT_TRUE(near_.progress());
  EXPECT_FALSE(near_.progress());
  EXPECT_FALSE(near_.is_ready());
  EXPECT_TRUE(near_.is_idle());

  EXPECT_TRUE(far_.is_ready());
  EXPECT_FALSE(far_.progress()) << "nobody waits for it";
  EXPECT_FALSE(far_.is_ready());
  receive(got_, 7, 100);
  EXPECT_EQ(state(got_), kDone);
  EXPECT_EQ(got_.data, sent_.data);
  EXPECT_TRUE(far_.progress());
  receive(got_, 7, 100);
  EXPECT_EQ(state(got_), kPending);
  EXPECT_FALSE(far_.is_idle());
  send(sent_, 7, 0);
  EXPECT_TRUE(far_.progress());
  EXPECT_EQ(state(got_), kDone);
  EXPECT_EQ(got_.message.bytes, 0u);
}

TEST_F(ShmChannelTest, ARingIsMadeByItsWriterForTheFirstMessage) {
  go_on();
  receive(got_, 1, 100);
  go_on();
  EXPECT_EQ(rings_made_, 0) << "a receive needs none";
  send(sent_, 1, 100);
  EXPECT_EQ(rings_made_, 1);
  send(next_, 2, 100);
  go_on();
  EXPECT_EQ(rings_made_, 1);
  EXPECT_EQ(state(got_), kDone);
  // More than may be early is sent when the receiver has granted it, through its own ring.
  send(sent_, 3, kEarly + 1);
  receive(got_, 3, kEarly + 1);
  go_on();
  EXPECT_EQ(rings_made_, 2);
  EXPECT_TRUE(got_.data == sent_.data);
}

TEST_F(ShmChannelTest, WithoutMemoryForItsRingMessagesFailAndSayWhy) {
  memory_is_short_ = true;
  near_.receive(1, got_.data.data(), 0, got_.message);
  send(sent_, 1, 100);
  EXPECT_EQ(state(sent_), kFailed);
  EXPECT_EQ(sent_.message.error, "no memory for a ring");
  EXPECT_EQ(state(got_), kFailed);
  EXPECT_TRUE(near_.is_closed());
  EXPECT_TRUE(near_.progress());
  send(next_, 2, 100);
  EXPECT_EQ(state(next_), kFailed);
  EXPECT_EQ(next_.message.error, "no memory for a ring");
}

TEST_F(ShmChannelTest, TwoRingsOfBytesMayBeEarlyAndMoreWaitsForItsReceive) {
  send(sent_, 1, kEarly);
  send(next_, 2, 1);
  go_on();
  EXPECT_EQ(state(sent_), kDone);
  EXPECT_EQ(state(next_), kPending);
  receive(got_, 1, kEarly);
  EXPECT_EQ(state(got_), kDone);
  EXPECT_EQ(got_.data, sent_.data);
  go_on();
  EXPECT_EQ(state(next_), kPending) << "it was announced before";
  receive(other_, 2, 1);
  go_on();
  EXPECT_EQ(state(next_), kDone);
  EXPECT_EQ(other_.data, next_.data);
  // What was received makes room for as much again.
  send(sent_, 1, kEarly);
  go_on();
  EXPECT_EQ(state(sent_), kDone);
}

TEST_F(ShmChannelTest, AWriterThatSleepsIsRungWhenHalfTheRingIsFree) {
  send(sent_, 1, kEarly);
  near_.progress();
  EXPECT_EQ(state(sent_), kPending);
  EXPECT_FALSE(near_.is_ready()) << "there is no room";
  far_.progress();
  EXPECT_EQ(rung_by_far_, 0) << "it does not sleep";
  EXPECT_TRUE(near_.is_ready());
  near_.progress();
  EXPECT_FALSE(near_.is_ready());
  near_.before_sleep();
  far_.progress();
  EXPECT_GT(rung_by_far_, 0);
  near_.after_sleep();
  EXPECT_TRUE(near_.is_ready());
  go_on();
  EXPECT_EQ(state(sent_), kDone);
  // With nothing to send nothing is asked for.
  rung_by_far_ = 0;
  near_.before_sleep();
  send(next_, 2, 10);
  far_.progress();
  EXPECT_EQ(rung_by_far_, 0);
}

TEST_F(ShmChannelTest, AMessageThatIsCancelledBeforeItBeginsCountsForNothing) {
  // Fills the ring, so that the next one is chosen but cannot begin.
  send(sent_, 1, kRing - kHeader);
  EXPECT_EQ(state(sent_), kDone);
  send(next_, 2, kRing);
  EXPECT_EQ(state(next_), kPending);
  EXPECT_TRUE(near_.cancel(next_.message));
  EXPECT_EQ(state(next_), kIdle);
  EXPECT_FALSE(near_.cancel(next_.message));
  // Exactly what is left of two rings is early.
  send(next_, 3, kEarly - (kRing - kHeader));
  go_on();
  EXPECT_EQ(state(next_), kDone);
  EXPECT_TRUE(near_.is_idle());
  receive(got_, 3, kEarly);
  EXPECT_EQ(got_.message.bytes, kRing + kHeader);
}

TEST_F(ShmChannelTest, AMessageThatIsCancelledWhileItWaitsIsNeverSent) {
  send(sent_, 1, kRing);
  send(next_, 2, 10);
  EXPECT_TRUE(near_.cancel(next_.message));
  send(other_, 3, 10);
  receive(got_, 2, 10);
  go_on();
  EXPECT_EQ(state(got_), kPending);
  EXPECT_EQ(state(other_), kDone);
  EXPECT_TRUE(far_.cancel(got_.message));
  EXPECT_EQ(state(got_), kIdle);
  EXPECT_TRUE(far_.is_idle());
}

TEST_F(ShmChannelTest, AMessageThatIsGivenUpBeforeItsReceiveLeavesNothingBehind) {
  send(sent_, 2, kEarly);
  far_.progress();
  EXPECT_TRUE(near_.cancel(sent_.message));
  go_on();
  for (const size_t bytes : {100, 200, 300}) {
    send(next_, 2, bytes);
    go_on();
    receive(got_, 2, bytes);
    go_on();
    EXPECT_EQ(state(got_), kDone);
    EXPECT_EQ(got_.data, next_.data);
  }
  receive(other_, 2, 100);
  go_on();
  EXPECT_EQ(state(other_), kPending);
}

TEST_F(ShmChannelTest, AMessageThatItsSenderGivesUpFailsAtTheReceiver) {
  // In the middle, with its receive posted.
  receive(got_, 1, kEarly);
  send(sent_, 1, kEarly);
  far_.progress();
  EXPECT_EQ(state(sent_), kPending);
  EXPECT_TRUE(near_.cancel(sent_.message));
  go_on();
  EXPECT_EQ(state(got_), kFailed);
  EXPECT_EQ(got_.message.error, "its sender has given it up");
  // In the middle, before its receive: the bytes count as received.
  send(sent_, 2, kEarly);
  far_.progress();
  EXPECT_TRUE(near_.cancel(sent_.message));
  go_on();
  send(sent_, 3, kEarly);
  go_on();
  EXPECT_EQ(state(sent_), kDone);
  receive(got_, 2, kEarly);
  EXPECT_EQ(state(got_), kPending) << "nothing came of it";
  // Announced, and granted.
  for (const bool granted : {false, true}) {
    send(next_, 4, 10);
    go_on();
    if (granted) receive(other_, 4, 10);
    if (granted) far_.progress();
    EXPECT_EQ(state(next_), kPending);
    EXPECT_TRUE(near_.cancel(next_.message));
    go_on();
    EXPECT_EQ(state(other_), granted ? kFailed : kIdle);
  }
}

TEST_F(ShmChannelTest, AReceiveThatIsCancelledHalfWayTakesTheBytesNowhere) {
  receive(got_, 1, kEarly);
  send(sent_, 1, kEarly);
  far_.progress();
  const auto before = got_.data;
  EXPECT_NE(before[0], std::byte{0});
  EXPECT_EQ(before.back(), std::byte{0});
  EXPECT_TRUE(far_.cancel(got_.message));
  go_on();
  EXPECT_EQ(state(sent_), kDone);
  EXPECT_EQ(got_.data, before);
  EXPECT_TRUE(far_.is_idle());
  // Granted, but not begun.
  send(sent_, 2, kEarly);
  send(next_, 3, 10);
  go_on();
  receive(other_, 3, 10);
  EXPECT_TRUE(far_.cancel(other_.message));
  go_on();
  EXPECT_EQ(state(next_), kDone);
  EXPECT_TRUE(std::ranges::all_of(other_.data, [](std::byte each) { return each == std::byte{}; }));
}

TEST_F(ShmChannelTest, AMessageLongerThanItsPlaceFailsWithBothSizes) {
  receive(got_, 1, 99);
  send(sent_, 1, 100);
  far_.progress();
  EXPECT_EQ(state(got_), kFailed);
  EXPECT_EQ(got_.message.error, "100 bytes were sent where 99 were expected");
  EXPECT_EQ(got_.message.bytes, 100u);
  EXPECT_EQ(got_.data[0], std::byte{0});
  receive(got_, 1, 101);
  send(sent_, 1, 100);
  far_.progress();
  EXPECT_EQ(state(got_), kDone);
  EXPECT_EQ(got_.message.bytes, 100u);
}

TEST_F(ShmChannelTest, AClosedChannelGivesWhatHasArrivedAndFailsTheRest) {
  Sending waiting, sending, early;
  send(sent_, 1, 100);     // arrives before the end, read by `close`
  send(next_, 2, kEarly);  // half of it arrives
  far_.receive(9, nullptr, 0, waiting.message);
  sending.data = contents(1, kEarly);
  far_.send(5, sending.data.data(), kEarly, sending.message);
  EXPECT_FALSE(far_.is_closed());
  far_.close("rank 0 is gone");
  far_.close("later");
  EXPECT_TRUE(far_.is_closed());
  EXPECT_TRUE(far_.is_ready());
  EXPECT_TRUE(far_.progress());
  EXPECT_FALSE(far_.is_ready());
  for (const Sending* each : {&waiting, &sending}) {
    EXPECT_EQ(state(*each), kFailed);
    EXPECT_EQ(each->message.error, "rank 0 is gone");
  }
  receive(got_, 1, 100);
  EXPECT_EQ(state(got_), kDone);
  EXPECT_EQ(got_.data, sent_.data);
  receive(other_, 2, kEarly);
  EXPECT_EQ(other_.message.error, "rank 0 is gone");
  far_.send(6, nullptr, 0, early.message);
  EXPECT_EQ(early.message.error, "rank 0 is gone");
  EXPECT_TRUE(far_.is_idle());
}

}  // namespace
}  // namespace lockstep::dist
