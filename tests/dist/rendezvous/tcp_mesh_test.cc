#include "dist/rendezvous/tcp_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
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

}  // namespace
}  // namespace lockstep::dist
