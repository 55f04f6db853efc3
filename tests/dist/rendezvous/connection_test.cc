#include "dist/rendezvous/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLargest = size_t{1} << 20;

/// Both ends of a connection with minimal socket buffers.
std::pair<Descriptor, Descriptor> narrow_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const int least = 1;  // the kernel raises it to some kilobytes
  for (const int end : ends) {
    EXPECT_EQ(setsockopt(end, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Sends SIGALRM every 100 us to a handler without SA_RESTART, so that system calls are
/// interrupted.
class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    EXPECT_EQ(sigaction(SIGALRM, &action, &before_), 0);
    const itimerval often{{0, 100}, {0, 100}};
    EXPECT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ~SignalStorm() {
    const itimerval never{};
    EXPECT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
    EXPECT_EQ(sigaction(SIGALRM, &before_, nullptr), 0);
  }

 private:
  struct sigaction before_ {};
};

std::vector<StoreMessage> random_messages(std::mt19937& random) {
  std::vector<StoreMessage> messages;
  for (uint64_t id = 0; id < 60; ++id) {
    const size_t length = id % 20 == 19 ? 60'000 : random() % 300;
    std::string text(length, '\0');
    std::ranges::generate(text, [&] { return static_cast<char>(random()); });
    messages.push_back({StoreMessage::Kind::kPost, id, {static_cast<int64_t>(random())}, {text}});
  }
  return messages;
}

TEST(Connection, MessagesArriveWholeWhateverTheSystemTakesAndGivesAtOnce) {
  std::mt19937 random(1);
  const std::vector<StoreMessage> messages = random_messages(random);
  auto [out, relay_in] = narrow_pair();
  auto [relay_out, in] = narrow_pair();
  Connection sender(std::move(out), kLargest);
  Connection receiver(std::move(in), kLargest);
  for (const StoreMessage& message : messages) sender.send(message);
  EXPECT_GT(sender.unsent_bytes(), 100'000U) << "nothing was held back";

  const SignalStorm storm;
  std::vector<StoreMessage> received;
  std::string held;  // bytes in flight between the two ends
  std::string why;
  for (int round = 0; received.size() < messages.size() && round < 1'000'000; ++round) {
    sender.flush();
    char bytes[13];
    const ssize_t got = ::recv(relay_in.get(), bytes, 1 + random() % sizeof bytes, 0);
    if (got > 0) held.append(bytes, static_cast<size_t>(got));
    const ssize_t sent = ::send(relay_out.get(), held.data(), held.size(), MSG_NOSIGNAL);
    if (sent > 0) held.erase(0, static_cast<size_t>(sent));
    ASSERT_TRUE(receiver.receive(why)) << why;
    while (auto message = receiver.next()) received.push_back(std::move(*message));
  }
  ASSERT_EQ(received.size(), messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(received[i].kind, messages[i].kind);
    EXPECT_EQ(received[i].id, messages[i].id);
    EXPECT_EQ(received[i].numbers, messages[i].numbers);
    EXPECT_EQ(received[i].texts, messages[i].texts);
  }
  EXPECT_EQ(sender.unsent_bytes(), 0U);
}

TEST(Connection, AnEndComesAfterAllThatWasSent) {
  auto [out, in] = narrow_pair();
  Connection sender(std::move(out), kLargest);
  Connection receiver(std::move(in), kLargest);
  sender.send({StoreMessage::Kind::kPost, 1, {}, {std::string(100'000, 'x')}});
  sender.end_sending();
  std::string why;
  bool open = true;
  size_t received = 0;
  for (int round = 0; open && round < 100'000; ++round) {
    sender.flush();
    open = receiver.receive(why);
    while (auto message = receiver.next()) received += message->texts.at(0).size();
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(received, 100'000U);
}

TEST(Connection, TakesMessagesUpToItsLimitAndSaysWhatIsNone) {
  auto [out, in] = narrow_pair();
  Connection sender(std::move(out), kLargest);
  // Kind, id, counts and the text's length are 16 bytes.
  constexpr size_t kRest = 1 + 8 + 1 + 2 + 4;
  Connection receiver(std::move(in), 100 + kRest);
  std::string why;
  sender.send({StoreMessage::Kind::kPost, 1, {}, {std::string(100, 'x')}});
  ASSERT_TRUE(receiver.receive(why));
  const auto whole = receiver.next();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->texts[0].size(), 100u);
  EXPECT_FALSE(receiver.next());
  sender.send({StoreMessage::Kind::kPost, 2, {}, {std::string(101, 'x')}});
  ASSERT_TRUE(receiver.receive(why));
  expect_error<DistError>([&] { receiver.next(); },
                          "[store] received what is no message of a store: its length would be "
                          "117 bytes.");
  receiver.set_largest_message(kLargest);
  ASSERT_TRUE(receiver.receive(why));
  EXPECT_EQ(receiver.next().value().id, 2u);
}

TEST(Connection, SaysHowItEnded) {
  auto [out, in] = narrow_pair();
  Connection receiver(std::move(in), kLargest);
  const std::string no_message("\2\0\0\0ab", 6);
  EXPECT_EQ(::send(out.get(), no_message.data(), no_message.size(), MSG_NOSIGNAL), 6);
  out.reset();
  std::string why;
  EXPECT_TRUE(receiver.receive(why));
  expect_error<DistError>([&] { receiver.next(); },
                          "[store] received what is no message of a store, of 2 bytes.");
  EXPECT_FALSE(receiver.receive(why));
  EXPECT_EQ(why, "ended without leaving the job: its connection was closed");
  receiver.send({StoreMessage::Kind::kLeave, 1, {}, {}});
  EXPECT_EQ(receiver.unsent_bytes(), 0u) << "nobody would read it";
}

TEST(Connection, SaysThatItBrokeWhenTheOtherEndDroppedWhatItWasSent) {
  auto [out, in] = narrow_pair();
  Connection receiver(std::move(in), kLargest);
  receiver.send({StoreMessage::Kind::kPost, 1, {}, {"nobody reads this"}});
  out.reset();
  std::string why;
  EXPECT_FALSE(receiver.receive(why));
  EXPECT_EQ(why, "ended without leaving the job: its connection broke (Connection reset by peer)");
}

TEST(Connection, SaysThatAHostThatDoesNotAnswerIsLost) {
  // A listener whose queue is full drops further attempts to connect, as a dead host does.
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const Connected first = begin_connecting(endpoint);
  ASSERT_TRUE(first.socket) << first.error;
  ASSERT_TRUE(wait_for(first.socket, true, Clock::now() + std::chrono::seconds(10)));
  const Descriptor unanswered(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int once = 1;
  ASSERT_EQ(setsockopt(unanswered.get(), IPPROTO_TCP, TCP_SYNCNT, &once, sizeof once), 0);
  const unsigned milliseconds = 1;
  ASSERT_EQ(setsockopt(unanswered.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
                       sizeof milliseconds),
            0);
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  ASSERT_EQ(connect(unanswered.get(), reinterpret_cast<sockaddr*>(&address), length), -1);
  ASSERT_EQ(errno, EINPROGRESS);
  ASSERT_TRUE(wait_for(unanswered, true, Clock::now() + std::chrono::seconds(30)));
  Connection connection(Descriptor(::dup(unanswered.get())), kLargest);
  std::string why;
  EXPECT_FALSE(connection.receive(why));
  EXPECT_EQ(why, "is lost: its host, or the network to it, does not answer (Connection timed out)");
}

/// Bytes that this process has from the heap.
size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Connection, KeepsNoMoreThanIsUnsentForAnEndThatNeverCatchesUp) {
  constexpr size_t kMessage = 100'000;
  auto [out, in] = narrow_pair();
  Connection sender(std::move(out), kLargest);
  const StoreMessage message{StoreMessage::Kind::kPost, 1, {}, {std::string(kMessage, 'x')}};
  std::string bytes(kMessage, '\0');
  const size_t before = heap_bytes();
  size_t sent = 0;
  while (sent < 300 * kMessage) {
    while (sender.unsent_bytes() < 2 * kMessage) {
      sender.send(message);
      sent += kMessage;
    }
    sender.flush();
    while (::recv(in.get(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }
  EXPECT_GT(sender.unsent_bytes(), 0u) << "it has caught up";
  EXPECT_LT(heap_bytes(), before + 30 * kMessage);
}

}  // namespace
}  // namespace lockstep::dist
