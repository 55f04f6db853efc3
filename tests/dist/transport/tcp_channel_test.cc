// What a channel puts on the wire, and what it makes of what comes from there. The peer is the
// test.

#include "dist/transport/tcp_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

/// A header as it is sent.
struct Frame {
  uint32_t kind = 0;
  uint32_t unused = 0;
  uint64_t id = 0;
  uint64_t tag = 0;
  uint64_t total = 0;
  uint64_t placed = 0;

  friend bool operator==(const Frame&, const Frame&) = default;
};
constexpr uint32_t kEager = 1, kAnnounced = 2, kGrants = 3, kGrantedNow = 4, kAbandons = 5,
                   kPlacedOnly = 6;
constexpr size_t kLimit = TcpChannel::kEagerBytes;

class TcpChannelTest : public testing::Test {
 protected:
  TcpChannelTest() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    peer_ = Descriptor(ends[1]);
    channel_ = std::make_unique<TcpChannel>(Descriptor(ends[0]));
  }

  /// What the channel sends next, so many bytes.
  std::vector<std::byte> read(size_t bytes) {
    std::vector<std::byte> all(bytes);
    size_t got = 0;
    for (int round = 0; got < bytes && round < 100'000; ++round) {
      channel_->push();
      const ssize_t now = ::recv(peer_.get(), all.data() + got, bytes - got, 0);
      if (now > 0) got += static_cast<size_t>(now);
    }
    EXPECT_EQ(got, bytes);
    return all;
  }
  Frame read_frame() {
    Frame frame;
    std::memcpy(&frame, read(sizeof frame).data(), sizeof frame);
    return frame;
  }
  /// Whether the channel has sent nothing more.
  bool is_silent() {
    channel_->push();
    char byte = 0;
    return ::recv(peer_.get(), &byte, 1, 0) < 0;
  }
  /// The peer sends this, and the channel reads it.
  void tell(const void* data, size_t bytes) {
    const auto* at = static_cast<const std::byte*>(data);
    while (bytes > 0) {
      const ssize_t sent = ::send(peer_.get(), at, bytes, MSG_NOSIGNAL);
      if (sent > 0) {
        at += sent;
        bytes -= static_cast<size_t>(sent);
      }
      while (channel_->pull()) {
      }
    }
  }
  void tell(const Frame& frame, const std::vector<std::byte>& payload = {}) {
    tell(&frame, sizeof frame);
    tell(payload.data(), payload.size());
  }
  size_t ended_bytes() {
    bool ended = false;
    return channel_->take_ended(ended);
  }

  Descriptor peer_;
  std::unique_ptr<TcpChannel> channel_;
  Message message_, other_;
};

TEST_F(TcpChannelTest, AMessageIsSentAtOnceWithItsNumberAndTag) {
  const auto data = contents(1, 100);
  EXPECT_FALSE(channel_->has_unsent());
  channel_->send(7, data.data(), data.size(), message_);
  channel_->send(8, nullptr, 0, other_);
  EXPECT_TRUE(channel_->has_unsent());
  EXPECT_EQ(channel_->pending(), 2);
  EXPECT_EQ(read_frame(), (Frame{.kind = kEager, .id = 0, .tag = 7, .total = 100}));
  EXPECT_EQ(read(100), data);
  EXPECT_EQ(read_frame(), (Frame{.kind = kEager, .id = 1, .tag = 8, .total = 0}));
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_EQ(message_.bytes, 100u);
  EXPECT_EQ(other_.state, Message::State::kDone);
  EXPECT_EQ(channel_->pending(), 0);
  EXPECT_EQ(ended_bytes(), 100u);
  EXPECT_FALSE(channel_->has_unsent());
  EXPECT_TRUE(is_silent());
}

TEST_F(TcpChannelTest, AMessageBeyondTheEagerLimitIsAnnouncedAndSentWhenGranted) {
  const auto full = contents(1, kLimit);
  const auto more = contents(2, 3);
  channel_->send(1, full.data(), full.size(), message_);
  channel_->send(2, more.data(), more.size(), other_);
  EXPECT_EQ(read_frame(), (Frame{.kind = kEager, .id = 0, .tag = 1, .total = kLimit}));
  EXPECT_EQ(read(kLimit), full);
  EXPECT_EQ(read_frame(), (Frame{.kind = kAnnounced, .id = 1, .tag = 2, .total = 3}));
  EXPECT_TRUE(is_silent());
  EXPECT_EQ(other_.state, Message::State::kPending);
  tell(Frame{.kind = kGrants, .id = 5});  // of a message that was cancelled meanwhile
  EXPECT_TRUE(is_silent());
  tell(Frame{.kind = kGrants, .id = 1});
  EXPECT_TRUE(channel_->has_unsent());
  EXPECT_EQ(read_frame(), (Frame{.kind = kGrantedNow, .id = 1, .tag = 2, .total = 3}));
  EXPECT_EQ(read(3), more);
  EXPECT_EQ(other_.state, Message::State::kDone);
  // As far as the peer has placed the bytes, more may be sent.
  tell(Frame{.kind = kPlacedOnly, .placed = 3});
  channel_->send(3, more.data(), 3, message_);
  channel_->send(4, more.data(), 1, other_);
  EXPECT_EQ(read_frame().kind, kEager);
  read(3);
  EXPECT_EQ(read_frame(), (Frame{.kind = kAnnounced, .id = 3, .tag = 4, .total = 1}));
}

TEST_F(TcpChannelTest, WhatArrivesBeforeItsReceiveWaitsForIt) {
  const auto data = contents(1, 10'000);
  tell(Frame{.kind = kEager, .id = 0, .tag = 5, .total = data.size()}, data);
  tell(Frame{.kind = kEager, .id = 1, .tag = 6, .total = 0});
  std::vector<std::byte> place(data.size());
  channel_->receive(6, nullptr, 0, other_);
  EXPECT_EQ(other_.state, Message::State::kDone);
  channel_->receive(5, place.data(), place.size(), message_);
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_EQ(place, data);
  EXPECT_EQ(ended_bytes(), data.size());
  EXPECT_EQ(channel_->pending(), 0);
}

TEST_F(TcpChannelTest, AnAnnouncedMessageIsGrantedWhenItsReceiveIsPosted) {
  const auto data = contents(1, 100);
  std::vector<std::byte> place(100);
  tell(Frame{.kind = kAnnounced, .id = 3, .tag = 5, .total = 100});
  EXPECT_TRUE(is_silent());
  channel_->receive(5, place.data(), place.size(), message_);
  EXPECT_EQ(read_frame(), (Frame{.kind = kGrants, .id = 3}));
  EXPECT_EQ(message_.state, Message::State::kPending);
  tell(Frame{.kind = kGrantedNow, .id = 3, .tag = 5, .total = 100}, data);
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_EQ(place, data);
  EXPECT_TRUE(is_silent()) << "granted bytes do not count for the eager limit";
}

TEST_F(TcpChannelTest, TheBytesThatWerePlacedAreToldWithTheNextHeaderOrAtAQuarterOfTheLimit) {
  std::vector<std::byte> place(kLimit / 4);
  const auto part = contents(1, kLimit / 4 - 1);
  channel_->receive(1, place.data(), place.size(), message_);
  tell(Frame{.kind = kEager, .id = 0, .tag = 1, .total = part.size()}, part);
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_FALSE(channel_->has_unsent());
  EXPECT_TRUE(is_silent());
  channel_->receive(1, place.data(), 1, message_);
  tell(Frame{.kind = kEager, .id = 1, .tag = 1, .total = 1}, contents(2, 1));
  EXPECT_TRUE(channel_->has_unsent());
  EXPECT_EQ(read_frame(), (Frame{.kind = kPlacedOnly, .placed = kLimit / 4}));
  EXPECT_TRUE(is_silent());
  channel_->receive(1, place.data(), 2, message_);
  tell(Frame{.kind = kEager, .id = 2, .tag = 1, .total = 2}, contents(2, 2));
  channel_->send(2, nullptr, 0, message_);
  EXPECT_EQ(read_frame(),
            (Frame{.kind = kEager, .id = 0, .tag = 2, .total = 0, .placed = kLimit / 4 + 2}));
}

TEST_F(TcpChannelTest, AMessageThatIsCancelledIsNotSentOrIsAbandoned) {
  const auto data = contents(1, kLimit);
  channel_->send(1, data.data(), 10, message_);
  EXPECT_TRUE(channel_->cancel(message_)) << "still waiting";
  EXPECT_EQ(message_.state, Message::State::kIdle);
  EXPECT_FALSE(channel_->has_unsent());
  EXPECT_FALSE(channel_->cancel(message_));
  EXPECT_EQ(channel_->pending(), 0);
  channel_->send(1, data.data(), kLimit, message_);
  read(sizeof(Frame) + kLimit);
  for (const bool granted : {false, true}) {
    channel_->send(2, data.data(), 1, other_);
    const Frame announced = read_frame();
    EXPECT_EQ(announced.kind, kAnnounced);
    if (granted) tell(Frame{.kind = kGrants, .id = announced.id});
    EXPECT_TRUE(channel_->cancel(other_));
    EXPECT_EQ(read_frame(), (Frame{.kind = kAbandons, .id = announced.id}));
    EXPECT_TRUE(is_silent());
  }
}

TEST_F(TcpChannelTest, AMessageThatIsPartlySentArrivesThoughItIsCancelled) {
  auto data = contents(1, kLimit);
  channel_->send(1, data.data(), data.size(), message_);
  channel_->push();
  ASSERT_TRUE(channel_->is_blocked()) << "the socket takes less than this";
  ASSERT_EQ(message_.state, Message::State::kPending);
  EXPECT_TRUE(channel_->cancel(message_));
  std::fill(data.begin(), data.end(), std::byte{0});
  read_frame();
  EXPECT_EQ(read(kLimit), contents(1, kLimit));
  EXPECT_EQ(message_.state, Message::State::kIdle);
  EXPECT_FALSE(channel_->is_blocked());
}

TEST_F(TcpChannelTest, AReceiveThatIsCancelledTouchesNoMemory) {
  std::vector<std::byte> place(200'000);
  const auto data = contents(1, place.size());
  // Not begun: the message then waits for another receive.
  channel_->receive(1, place.data(), place.size(), message_);
  EXPECT_TRUE(channel_->cancel(message_));
  // In the middle.
  channel_->receive(1, place.data(), place.size(), message_);
  tell(Frame{.kind = kEager, .tag = 1, .total = data.size()});
  tell(data.data(), 100);
  EXPECT_EQ(place[99], data[99]);
  EXPECT_TRUE(channel_->cancel(message_));
  tell(data.data() + 100, data.size() - 100);
  EXPECT_EQ(place[100], std::byte{0});
  EXPECT_EQ(place.back(), std::byte{0});
  // Granted, but not begun.
  tell(Frame{.kind = kAnnounced, .id = 1, .tag = 2, .total = 10});
  channel_->receive(2, place.data() + 1000, 10, message_);
  EXPECT_EQ(read_frame().kind, kGrants);
  EXPECT_TRUE(channel_->cancel(message_));
  tell(Frame{.kind = kGrantedNow, .id = 1, .tag = 2, .total = 10}, contents(3, 10));
  EXPECT_EQ(place[1000], std::byte{0});
  EXPECT_EQ(channel_->pending(), 0);
  // The next one arrives.
  channel_->receive(3, place.data(), 10, message_);
  tell(Frame{.kind = kEager, .id = 2, .tag = 3, .total = 10}, contents(3, 10));
  EXPECT_EQ(message_.state, Message::State::kDone);
}

TEST_F(TcpChannelTest, AMessageThatItsSenderGivesUpFails) {
  std::vector<std::byte> place(10);
  tell(Frame{.kind = kAnnounced, .id = 4, .tag = 1, .total = 10});
  tell(Frame{.kind = kAbandons, .id = 4});
  channel_->receive(1, place.data(), 10, message_);
  EXPECT_EQ(message_.state, Message::State::kPending) << "the one before is forgotten";
  tell(Frame{.kind = kAnnounced, .id = 5, .tag = 1, .total = 10});
  tell(Frame{.kind = kAbandons, .id = 9});  // of another
  EXPECT_EQ(message_.state, Message::State::kPending);
  tell(Frame{.kind = kAbandons, .id = 5});
  EXPECT_EQ(message_.state, Message::State::kFailed);
  EXPECT_EQ(message_.error, "its sender has given it up");
}

TEST_F(TcpChannelTest, AMessageLongerThanItsPlaceFailsWithBothSizes) {
  std::vector<std::byte> place(10);
  channel_->receive(1, place.data(), 9, message_);
  tell(Frame{.kind = kEager, .tag = 1, .total = 10}, contents(1, 10));
  EXPECT_EQ(message_.state, Message::State::kFailed);
  EXPECT_EQ(message_.error, "10 bytes were sent where 9 were expected");
  EXPECT_EQ(message_.bytes, 10u);
  EXPECT_EQ(place[0], std::byte{0});
  tell(Frame{.kind = kEager, .id = 1, .tag = 1, .total = 9}, contents(1, 9));
  channel_->receive(1, place.data(), 10, message_);
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_EQ(message_.bytes, 9u);
}

TEST_F(TcpChannelTest, WhatIsNoMessageOfARankEndsTheConnection) {
  EXPECT_EQ(channel_->end_of_peer(), "");
  tell(Frame{.kind = kGrantedNow, .id = 77});
  EXPECT_EQ(channel_->end_of_peer(), "is lost: it sent what is no message of a rank");
}

TEST_F(TcpChannelTest, AfterItsEndWhatHasArrivedIsStillReceived) {
  std::vector<std::byte> place(10);
  Message never;
  tell(Frame{.kind = kEager, .id = 0, .tag = 1, .total = 10}, contents(1, 10));
  tell(Frame{.kind = kEager, .id = 1, .tag = 2, .total = 10});
  tell(place.data(), 5);
  channel_->receive(3, place.data(), 10, never);
  channel_->send(4, place.data(), 10, other_);
  peer_.reset();
  EXPECT_FALSE(channel_->pull());
  EXPECT_EQ(channel_->end_of_peer(), "has closed its connection");
  channel_->push();
  EXPECT_FALSE(channel_->has_unsent()) << "nobody would read it";
  EXPECT_FALSE(channel_->is_closed());
  channel_->close("rank 1 is gone");
  channel_->close("later");
  EXPECT_TRUE(channel_->is_closed());
  for (const Message* each : {&never, &other_}) {
    EXPECT_EQ(each->state, Message::State::kFailed);
    EXPECT_EQ(each->error, "rank 1 is gone");
  }
  channel_->receive(1, place.data(), 10, message_);
  EXPECT_EQ(message_.state, Message::State::kDone);
  EXPECT_EQ(place, contents(1, 10));
  channel_->receive(2, place.data(), 10, message_);
  EXPECT_EQ(message_.error, "rank 1 is gone") << "half of it had come";
  channel_->send(5, place.data(), 1, other_);
  EXPECT_EQ(other_.error, "rank 1 is gone");
  EXPECT_EQ(channel_->pending(), 0);
}

}  // namespace
}  // namespace lockstep::dist
