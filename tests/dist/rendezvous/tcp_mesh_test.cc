#include "dist/rendezvous/tcp_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/socket.h"
#include "tests/dist/ddp/ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const std::string kSecret = "0123456789abcdef0123456789abcdef";

TEST(TcpMesh, StrangersAreShutOutAndDelayNobody) {
  std::vector<Descriptor> strangers;
  const auto start = Clock::now();
  run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
    TcpMesh mesh(rank, kSecret, true);
    const std::vector<std::string> places = all_gather(mesh.description({}));
    if (rank == 0) {
      const Endpoint own{"127.0.0.1", static_cast<uint16_t>(std::stoi(places[0]))};
      // One is silent, one sends what is no greeting, one ends at once.
      for (const char* text : {"", "GET / HTTP/1.1\r\nHost: a-host-of-nobody\r\n\r\n......"}) {
        Descriptor socket = connect_to(own, Clock::now() + 5s).socket;
        EXPECT_TRUE(socket);
        EXPECT_GE(::send(socket.get(), text, std::strlen(text), MSG_NOSIGNAL), 0);
        strangers.push_back(std::move(socket));
      }
      EXPECT_TRUE(connect_to(own, Clock::now() + 5s).socket);
    }
    (void)all_gather("the strangers are there");
    const auto sockets = mesh.connect({1 - rank}, places, {true, true}, Clock::now() + 10s);
    EXPECT_TRUE(sockets[static_cast<size_t>(1 - rank)]);
    EXPECT_FALSE(sockets[static_cast<size_t>(rank)]);
  });
  EXPECT_LT(Clock::now() - start, 5s);
}

/// What a rank that connects says first, by its bytes.
std::string greeting_of(int rank) {
  std::string text = "lockstep-rank-1";
  text.resize(16);
  const auto number = static_cast<int32_t>(rank);
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
  return text + kSecret;
}

TEST(TcpMesh, ALowerRankIsConnectedToAndNotLetIn) {
  TcpMesh mesh(1, kSecret, true);
  const Endpoint own{"127.0.0.1", static_cast<uint16_t>(std::stoi(mesh.description({})))};
  const std::string greeting = greeting_of(0);
  const Descriptor false_rank = connect_to(own, Clock::now() + 5s).socket;
  ASSERT_EQ(::send(false_rank.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(greeting.size()));
  // Nothing answers in the place of rank 0.
  Endpoint silent{"127.0.0.1", 0};
  const Descriptor listener = listen_at(silent);
  EXPECT_THROW((void)mesh.connect({0}, {std::to_string(silent.port), ""}, {true, true},
                                  Clock::now() + 100ms),
               TimeoutError);
}

TEST(TcpMesh, RanksThatAnswerInEachOthersPlaceAreNotTakenForEachOther) {
  std::vector<Endpoint> places(2, Endpoint{"127.0.0.1", 0});
  const std::vector<Descriptor> listeners = [&] {
    std::vector<Descriptor> list;
    for (Endpoint& place : places) list.push_back(listen_at(place));
    return list;
  }();
  std::atomic<bool> over = false;
  std::thread others([&] {
    std::vector<Descriptor> sockets;
    while (!over) {
      for (int at = 0; at < 2; ++at) {
        const Descriptor& listener = listeners[static_cast<size_t>(at)];
        if (!wait_for(listener, false, Clock::now() + 1ms)) continue;
        sockets.push_back(accept_at(listener).socket);
        const std::string greeting = greeting_of(1 - at);
        (void)::send(sockets.back().get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
      }
    }
  });
  TcpMesh mesh(2, kSecret, true);
  EXPECT_THROW((void)mesh.connect(
                   {0, 1}, {std::to_string(places[0].port), std::to_string(places[1].port), ""},
                   {true, true, true}, Clock::now() + 150ms),
               TimeoutError);
  over = true;
  others.join();
}

TEST(TcpMesh, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  TcpMesh mesh(0, kSecret, true);
  try {
    (void)mesh.connect({2, 3}, {"", "", "", ""}, {true, true, true, true}, Clock::now() + 50ms);
    FAIL() << "nothing was thrown";
  } catch (const TimeoutError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 is not connected with ranks 2, 3 in time"));
  }
}

TEST(TcpMesh, OneWithAnotherSecretIsShutOut) {
  run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
    TcpMesh mesh(rank, rank == 0 ? kSecret : std::string(32, 'x'), true);
    const std::vector<std::string> places = all_gather(mesh.description({}));
    EXPECT_THROW((void)mesh.connect({1 - rank}, places, {true, true}, Clock::now() + 100ms),
                 DistError);
  });
}

TEST(TcpMesh, APeerThatCannotBeReachedIsNamedWithTheAddressesTried) {
  uint16_t closed = 0;
  {
    Endpoint endpoint{"127.0.0.1", 0};
    const Descriptor listener = listen_at(endpoint);
    closed = endpoint.port;
  }
  TcpMesh mesh(1, kSecret, true);
  try {
    (void)mesh.connect({0}, {std::to_string(closed), ""}, {true, true}, Clock::now() + 5s);
    FAIL() << "nothing was thrown";
  } catch (const BackendError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 is not reached at any address"));
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:" + std::to_string(closed)));
  }
}

TEST(TcpMesh, TellsItsPortAndUnlessItIsLocalItsAddressesTheGivenOnesFirst) {
  const auto lines_of = [](const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const TcpMesh local(0, kSecret, true);
  EXPECT_EQ(lines_of(local.description({"10.0.0.1"})).size(), 1u);
  EXPECT_GT(std::stoi(local.description({})), 0);
  const TcpMesh open(0, kSecret, false);
  const std::vector<std::string> hosts = host_addresses();
  std::vector<std::string> expected{"10.0.0.1"};
  expected.insert(expected.end(), hosts.begin(), hosts.end());
  std::vector<std::string> lines = lines_of(open.description({"10.0.0.1"}));
  EXPECT_EQ(std::vector<std::string>(lines.begin() + 1, lines.end()), expected);
  if (hosts.empty()) return;
  // One that is given and is the host's comes once.
  lines = lines_of(open.description({hosts.back()}));
  EXPECT_EQ(lines.size(), 1 + hosts.size());
  EXPECT_EQ(lines[1], hosts.back());
}

TEST(TcpMesh, RanksOfAnyNumberReachEachOtherAndExchangeBytes) {
  run_as_threads(4, [&](int rank, const AllGatherText& all_gather) {
    std::vector<int> peers;
    for (int peer = 0; peer < 4; ++peer) {
      if (peer != rank) peers.push_back(peer);
    }
    const std::vector<bool> near(4, true);
    const auto sockets = connect_mesh(rank, kSecret, {}, all_gather, peers, near, 10s);
    for (const int peer : peers) {
      const char own = static_cast<char>('a' + rank);
      EXPECT_EQ(::send(sockets[static_cast<size_t>(peer)].get(), &own, 1, MSG_NOSIGNAL), 1);
    }
    for (const int peer : peers) {
      const Descriptor& socket = sockets[static_cast<size_t>(peer)];
      EXPECT_TRUE(wait_for(socket, false, Clock::now() + 10s));
      char byte = 0;
      EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 1);
      EXPECT_EQ(byte, static_cast<char>('a' + peer));
    }
    (void)all_gather("the end");
  });
}

TEST(TcpMesh, WhatAnswersInThePlaceOfARankIsTriedAgainUntilTheDeadline) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  std::atomic<bool> over = false;
  std::atomic<int> tries = 0;
  std::thread other([&] {
    while (!over) {
      if (wait_for(listener, false, Clock::now() + 5ms) && accept_at(listener).socket) ++tries;
    }
  });
  const std::string expected =
      "[tcp] what answers at the address of rank 0 is not that rank. Look at what it does.";
  std::string told;
  // On a busy machine the deadline may pass elsewhere.
  for (int i = 0; i < 50 && told != expected; ++i) {
    TcpMesh mesh(1, kSecret, true);
    try {
      (void)mesh.connect({0}, {std::to_string(endpoint.port), ""}, {true, true},
                         Clock::now() + 100ms);
    } catch (const TimeoutError& error) {
      told = error.what();
    }
  }
  EXPECT_EQ(told, expected);
  over = true;
  other.join();
  EXPECT_GT(tries, 1);
}

}  // namespace
}  // namespace lockstep::dist
