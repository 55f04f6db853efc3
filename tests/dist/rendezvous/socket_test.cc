#include "dist/rendezvous/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/core/base/child_process.h"
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
  EXPECT_EQ(unacknowledged_for(near.socket), milliseconds(0));
}

TEST(Socket, APortInUseIsNamed) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  expect_error<AddressInUse>([&] { listen_at(endpoint); }, to_string(endpoint), "in use");
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
