#include "dist/rendezvous/store_clients.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <list>
#include <string>
#include <vector>

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using Kind = StoreMessage::Kind;

class StoreClientsTest : public testing::Test {
 protected:
  /// A client of the server; messages to it are read from `far`.
  StoreClient& add() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const int room = 4 << 20;
    EXPECT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    far_.emplace_back(Descriptor(ends[1]), kLargestStoreMessage);
    return clients_.add(Descriptor(ends[0]), "10.0.0.2:4711", 10s);
  }
  /// First letters of the texts that have come to the client added as number `index`.
  std::string heard(size_t index) {
    Connection& connection = *std::next(far_.begin(), static_cast<ptrdiff_t>(index));
    std::string why;
    std::string letters;
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(connection.receive(why));
      while (const auto message = connection.next()) letters += message->texts[0][0];
      for (StoreClient& one : clients_.all()) one.connection.flush();
    }
    return letters;
  }
  static StoreMessage text(const std::string& what) { return {Kind::kPost, 0, {0}, {what}}; }

  StoreClients clients_{3};
  std::list<Connection> far_;
};

TEST_F(StoreClientsTest, KnowsStrangersAndRemovesThemInTime) {
  StoreClient& first = add();
  StoreClient& second = add();
  EXPECT_EQ(first.from, "10.0.0.2:4711");
  EXPECT_EQ(first.give_up - first.came, 10s);
  EXPECT_EQ(clients_.strangers(), 2u);
  EXPECT_FALSE(clients_.remove_old_stranger(first.came + 249ms));
  clients_.bind_rank(first, 1);
  EXPECT_EQ(clients_.strangers(), 1u);
  second.refused = true;
  EXPECT_EQ(clients_.strangers(), 0u);
  // A refused one makes way at once, a rank never.
  EXPECT_TRUE(clients_.remove_old_stranger(first.came));
  EXPECT_FALSE(clients_.remove_old_stranger(first.came + 1h));
  ASSERT_EQ(clients_.all().size(), 1u);
  StoreClient& third = add();
  EXPECT_TRUE(clients_.remove_old_stranger(third.came + 250ms));
  first.to_remove = true;
  clients_.remove_gone();
  EXPECT_TRUE(clients_.all().empty());
}

TEST_F(StoreClientsTest, SendsToRanksThatAreThere) {
  StoreClient& one = add();
  StoreClient& two = add();
  clients_.bind_rank(one, 1);
  clients_.bind_rank(two, 2);
  clients_.send(1, text("a"));
  clients_.send(0, text("b"));
  clients_.send_to_all_ranks(text("c"));
  clients_.post(2, text("d"), false);
  clients_.post(0, text("e"), false);  // dropped: it has been there
  EXPECT_EQ(heard(0), "ac");
  EXPECT_EQ(heard(1), "cd");
  clients_.unbind_rank(two);
  EXPECT_EQ(two.rank, -1);
  clients_.send(2, text("f"));
  clients_.send_to_all_ranks(text("g"));
  EXPECT_EQ(heard(0), "g");
  EXPECT_EQ(heard(1), "");
  clients_.bind_rank(add(), 0);
  EXPECT_EQ(heard(2), "");
}

TEST_F(StoreClientsTest, DropsTextsForARankThatDoesNotReadThem) {
  StoreClient& there = add();
  clients_.bind_rank(there, 1);
  const std::string mebibyte(size_t{1} << 20, 'x');
  // Far more than the socket and what is kept take.
  for (int i = 0; i < 64; ++i) clients_.post(1, text(mebibyte), true);
  EXPECT_LT(there.connection.unsent_bytes(), 3 * mebibyte.size());
  EXPECT_GT(there.connection.unsent_bytes(), mebibyte.size());
}

TEST_F(StoreClientsTest, KeepsUpToAMebibyteForARankThatHasNotCome) {
  constexpr size_t kQuarter = 256 << 10;
  // With a byte more for each, four are more than a mebibyte: the fifth is dropped.
  for (const char c : {'a', 'b', 'c', 'd', 'e'}) {
    clients_.post(1, text(std::string(kQuarter, c)), true);
  }
  clients_.bind_rank(add(), 1);
  EXPECT_EQ(heard(0), "abcd");
  StoreClient& there = clients_.all().front();
  EXPECT_GT(kLargestStoreMessage, kLargestHello);
  clients_.unbind_rank(there);
  // What was kept is gone, and so is what counted for it.
  for (const char c : {'f', 'g', 'h'}) clients_.post(1, text(std::string(kQuarter, c)), true);
  clients_.bind_rank(there, 1);
  EXPECT_EQ(heard(0), "fgh");
}

}  // namespace
}  // namespace lockstep::dist
