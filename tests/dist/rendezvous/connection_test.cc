#include "dist/rendezvous/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

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

}  // namespace
}  // namespace lockstep::dist
