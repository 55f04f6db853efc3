#include "dist/rendezvous/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <resolv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "tests/core/base/child_process.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Endpoint, IsReadAndWrittenAlike) {
  EXPECT_EQ(parse_endpoint("node1:29500"), (Endpoint{"node1", 29500}));
  EXPECT_EQ(parse_endpoint("10.0.0.1:0"), (Endpoint{"10.0.0.1", 0}));
  EXPECT_EQ(parse_endpoint("[::1]:65535"), (Endpoint{"::1", 65535}));
  for (const char* text : {"node1:29500", "10.0.0.1:0", "[fe80::1]:1"}) {
    EXPECT_EQ(to_string(parse_endpoint(text)), text);
  }
}

TEST(Endpoint, WhatIsNoneIsRefusedWithTheFormExpected) {
  for (const char* text : {"", "node1", ":1", "node1:", "node1:x", "node1:65536", "node1:-1",
                           "node1:1x", "::1:5", "[]:5"}) {
    expect_error<DistError>([&] { parse_endpoint(text); }, "\"" + std::string(text) + "\"",
                            "expected");
  }
}

TEST(Socket, PortZeroIsChosenAndConnects) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  EXPECT_NE(endpoint.port, 0);
  const Connected near = connect_to(endpoint, Clock::now() + milliseconds(5000));
  ASSERT_TRUE(near.socket) << near.error;
  ASSERT_TRUE(wait_for(listener, false, Clock::now() + milliseconds(5000)));
  const Accepted far = accept_at(listener);
  ASSERT_TRUE(far.socket);
  EXPECT_THAT(far.from, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(accept_at(listener).error, EAGAIN);
  EXPECT_EQ(unanswered_for(near.socket), milliseconds(0));
}

TEST(Socket, AHostAnswersWhatKeepAliveAsks) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  const Connected near = connect_to(endpoint, Clock::now() + milliseconds(5000));
  ASSERT_TRUE(near.socket) << near.error;
  EXPECT_TRUE(comes_true([&] { return unanswered_for(near.socket) > milliseconds(0); }))
      << "nobody asks, so nobody answers";
  keep_alive(near.socket, milliseconds(10'000));
  EXPECT_TRUE(comes_true([&] { return unanswered_for(near.socket) == milliseconds(0); }));
}

TEST(Socket, APortInUseIsNamed) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  expect_error<AddressInUse>([&] { listen_at(endpoint); }, to_string(endpoint), "in use");
}

TEST(Socket, APortIsListenedAtAgainWhileOldConnectionsLinger) {
  Endpoint endpoint{"127.0.0.1", 0};
  Descriptor listener = listen_at(endpoint);
  const Descriptor far = connect_to(endpoint, Clock::now() + milliseconds(5000)).socket;
  ASSERT_TRUE(wait_for(listener, false, Clock::now() + milliseconds(5000)));
  accept_at(listener).socket.reset();  // the side that ends first keeps the port for a minute
  listener.reset();
  EXPECT_NO_THROW((void)listen_at(endpoint));
}

TEST(Socket, AnAddressOfAnotherMachineIsNotListenedAt) {
  Endpoint endpoint{"192.0.2.1", 0};
  expect_error<BackendError>([&] { listen_at(endpoint); }, "192.0.2.1", "not an address of this");
}

TEST(Socket, AHostThatDoesNotResolveIsNamed) {
  Endpoint endpoint{"no host has such a name", 1};
  expect_error<UnknownHost>([&] { listen_at(endpoint); }, "no host has such a name",
                            "does not resolve");
  expect_error<UnknownHost>([&] { connect_to(endpoint, Clock::now()); }, "no host has such a name",
                            "does not resolve");
}

TEST(Socket, AFailureOfNameResolutionThatMayPassIsToldApart) {
  // What a thread changes of its resolver ends with it.
  std::thread([] {
    ASSERT_EQ(::res_init(), 0);
    _res.nscount = 1;
    _res.nsaddr_list[0] = {};
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    _res.nsaddr_list[0].sin_port = ::htons(1);  // nobody answers there
    Endpoint endpoint{"node1.example", 1};
    expect_error<BackendError>([&] { listen_at(endpoint); },
                               "[store] the host of the store's address node1.example:1 does not "
                               "resolve now. Try again, or give an address.");
    EXPECT_EQ(connect_to(endpoint, Clock::now()).error, "its name does not resolve now");
  }).join();
}

TEST(Socket, NobodyListeningIsToldAtOnce) {
  Endpoint endpoint{"127.0.0.1", 0};
  (void)listen_at(endpoint);
  const Connected near = connect_to(endpoint, Clock::now() + milliseconds(5000));
  EXPECT_FALSE(near.socket);
  EXPECT_EQ(near.error, "Connection refused");
}

TEST(Socket, WaitingEndsAtItsDeadline) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  EXPECT_FALSE(wait_for(listener, false, Clock::now() + milliseconds(20)));
}

TEST(Endpoint, ARefusalSaysWhatWasExpected) {
  const auto refused = [](const std::string& text, const std::string& expected) {
    expect_error<DistError>(
        [&] { parse_endpoint(text); },
        "[store] \"" + text + "\" is no address of a store: expected " + expected + ".");
  };
  for (const char* text : {"", "node1", ":1"}) {
    refused(text, "HOST:PORT, as in node1:29500");
  }
  refused("::1:5", "brackets around an IPv6 address");
  refused("[::1:5", "brackets around an IPv6 address");
  refused("[]:5", "a host before the port");
  for (const char* text : {"node1:", "node1:x", "node1:65536", "node1:-1", "node1:1x"}) {
    refused(text, "a port between 0 and 65535");
  }
}

int option_of(const Descriptor& socket, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, option, &value, &length), 0);
  return value;
}

TEST(Socket, SendsAtOnceAndIsKeptAliveAsLongAsSilenceIsAllowed) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  const Connected near = connect_to(endpoint, Clock::now() + milliseconds(5000));
  ASSERT_TRUE(wait_for(listener, false, Clock::now() + milliseconds(5000)));
  const Accepted far = accept_at(listener);
  for (const Descriptor* socket : {&near.socket, &far.socket}) {
    EXPECT_NE(option_of(*socket, IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(option_of(*socket, SOL_SOCKET, SO_KEEPALIVE), 0);
  }
  const auto probes = [&](milliseconds silence) {
    keep_alive(near.socket, silence);
    return option_of(near.socket, IPPROTO_TCP, TCP_KEEPCNT);
  };
  EXPECT_EQ(probes(milliseconds(5'000)), 4);
  EXPECT_EQ(probes(milliseconds(5'001)), 5);
  EXPECT_EQ(probes(milliseconds(1'000)), 1);
  EXPECT_EQ(probes(milliseconds(1'000'000)), 100);
  EXPECT_EQ(option_of(near.socket, IPPROTO_TCP, TCP_KEEPIDLE), 1);
  EXPECT_EQ(option_of(near.socket, IPPROTO_TCP, TCP_KEEPINTVL), 1);
  EXPECT_NE(option_of(near.socket, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(own_end_of(near.socket).host, "127.0.0.1");
  EXPECT_EQ(to_string(own_end_of(near.socket)), far.from);
}

TEST(Socket, AHostIsThisOneIfItsAddressIs) {
  EXPECT_TRUE(is_own_host("127.0.0.1"));
  EXPECT_TRUE(is_own_host("localhost"));
  EXPECT_FALSE(is_own_host("192.0.2.1"));
}

TEST(WakeUp, IsReadableUntilItIsCleared) {
  WakeUp wake;
  const auto is_readable = [&] {
    pollfd entry{wake.fd(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  };
  EXPECT_FALSE(is_readable());
  wake.wake();
  wake.wake();
  EXPECT_TRUE(is_readable());
  wake.clear();
  EXPECT_FALSE(is_readable());
  wake.clear();
}

TEST(PollMilliseconds, AreRoundedUpWithinTheirBounds) {
  EXPECT_EQ(poll_milliseconds(Clock::now() - milliseconds(1), milliseconds(100)), 0);
  EXPECT_EQ(poll_milliseconds(Clock::time_point(), milliseconds(100)), 0);
  EXPECT_EQ(poll_milliseconds(Clock::now() + milliseconds(10'000), milliseconds(100)), 100);
  EXPECT_EQ(poll_milliseconds(Clock::time_point::max(), milliseconds(100)), 100);
  EXPECT_EQ(poll_milliseconds(Clock::now() + std::chrono::microseconds(1), milliseconds(100)) / 2,
            0);
  const int soon = poll_milliseconds(Clock::now() + milliseconds(5'000), milliseconds(10'000));
  EXPECT_GT(soon, 1'000);
  EXPECT_LE(soon, 5'000);
}

TEST(Descriptor, IsClosedInAForkedChildAndOpenHere) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Descriptor near(ends[0]);
  const Descriptor far(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    (void)pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  // Although the child lives, closing our end closes the connection.
  near.reset();
  char byte = 0;
  EXPECT_EQ(recv(far.get(), &byte, 1, 0), 0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);

  EXPECT_EQ(status_of_child([&] { return far.get() == -1 && !far; }), 0);
  EXPECT_TRUE(far);
}

TEST(Descriptor, MovingTakesItOver) {
  Descriptor first(dup(0));
  const int fd = first.get();
  Descriptor second(std::move(first));
  EXPECT_EQ(second.get(), fd);
  Descriptor third(dup(0));
  third = std::move(second);
  EXPECT_EQ(third.get(), fd);
  third.reset();
  EXPECT_FALSE(third);
}

}  // namespace
}  // namespace lockstep::dist
