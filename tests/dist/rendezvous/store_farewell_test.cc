// How a store's server stops: its ranks are told why, even those that read late, and others do not
// keep it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_message.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"
#include "tests/dist/rendezvous/raw_client.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;

// The server waits for its ranks for a second, in which a busy machine may not let the test do its
// part. So one good attempt of these is enough.
constexpr int kFarewells = 10;

/// Connects as a rank of a job of two ranks and waits until the server has let it in.
Descriptor raw_rank(const StoreJob& job, int rank) {
  Descriptor socket = connect_raw(job.address());
  send_raw(socket, encode({Kind::kHello,
                           0,
                           {kStoreProtocol, rank, 2, 77},
                           {kStoreMagic, "job-a", "open sesame", "there"}}));
  EXPECT_TRUE(wait_for(socket, false, Clock::now() + milliseconds(5000)));
  return socket;
}

/// Whether the other side of a connection, which has ended its sending, still takes messages.
bool takes_messages(const Descriptor& socket) {
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = encode({Kind::kPost, 0, {1}, {"late"}});
    if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return false;
    std::this_thread::sleep_for(milliseconds(1));
    char byte = 0;
    if (::recv(socket.get(), &byte, 1, 0) != 0) return false;
  }
  return true;
}

TEST(StoreFarewell, TheServerReadsUntilItsRanksHaveEndedTheirSides) {
  bool takes = false;
  for (int attempt = 0; attempt < kFarewells && !takes; ++attempt) {
    auto job = std::make_unique<StoreJob>(2);
    Descriptor first = raw_rank(*job, 0);
    Descriptor second = raw_rank(*job, 1);
    std::thread stop([&] { job.reset(); });
    EXPECT_TRUE(is_ended(first));
    EXPECT_TRUE(is_ended(second));
    takes = takes_messages(second) && takes_messages(first);
    first.reset();
    second.reset();
    stop.join();
  }
  EXPECT_TRUE(takes);
}

/// What a rank that did not read for long finds of what it was sent, up to the end.
std::vector<Kind> kinds_received(Descriptor socket) {
  Connection connection(std::move(socket), kLargestStoreMessage);
  std::vector<Kind> kinds;
  std::string why;
  for (bool open = true;
       open && wait_for(connection.socket(), false, Clock::now() + milliseconds(5000));) {
    open = connection.receive(why);
    while (const auto message = connection.next()) kinds.push_back(message->kind);
  }
  return kinds;
}

TEST(StoreFarewell, WhatARankHasNotReadYetReachesIt) {
  bool has_all = false;
  for (int attempt = 0; attempt < kFarewells && !has_all; ++attempt) {
    auto job = std::make_unique<StoreJob>(2);
    const Descriptor first = raw_rank(*job, 0);
    Descriptor second = raw_rank(*job, 1);
    // More than the system holds for a rank that does not read.
    Connection sender(Descriptor(::dup(first.get())), kLargestStoreMessage);
    for (int i = 0; i < 12; ++i) {
      sender.send({Kind::kPost, 0, {1}, {std::string(size_t{1} << 20, 'x')}});
    }
    while (sender.unsent_bytes() > 0) {
      ASSERT_TRUE(wait_for(sender.socket(), true, Clock::now() + milliseconds(5000)));
      sender.flush();
    }
    sender.end_sending();
    ASSERT_TRUE(is_ended(first));
    std::thread stop([&] { job.reset(); });
    const std::vector<Kind> kinds = kinds_received(std::move(second));
    has_all = !kinds.empty() && kinds.back() == Kind::kClosing;
    stop.join();
  }
  EXPECT_TRUE(has_all);
}

/// Whether the control knows of a failure within a time that is long enough for one that is told.
bool knows_of_a_failure(const StoreControl& control) {
  const auto until = Clock::now() + milliseconds(100);
  while (Clock::now() < until) {
    if (control.failure()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(StoreFarewell, AServerOfALauncherThatStopsIsNoFailure) {
  StoreServerOptions options = StoreJob::server_options(2);
  options.rank = -1;
  auto server = std::make_unique<StoreServer>(options);
  const Store store(StoreJob::rank_options(1, 2, server->address()));
  const StoreControl control(store);
  server.reset();
  EXPECT_FALSE(knows_of_a_failure(control));
  expect_error<PeerLostError>([&] { (void)store.get("key"); }, "the launcher", "stopped it");
}

TEST(StoreFarewell, AServerThatEndsAfterARankHasLeftIsNoFailureOfItsJob) {
  auto job = std::make_unique<StoreJob>(2);
  const Store store = job->rank(1);
  StoreControl control(store);
  control.leave();
  job.reset();
  EXPECT_FALSE(knows_of_a_failure(control));
}

TEST(StoreFarewell, AServersRankThatStopsItWithoutLeavingIsTheFailure) {
  auto job = std::make_unique<StoreJob>(2);
  const Store leader = job->rank(0), store = job->rank(1);
  const StoreControl control(store);
  job.reset();
  ASSERT_TRUE(comes_true([&] { return control.failure().has_value(); }));
  EXPECT_EQ(control.failure()->rank, 0);
  EXPECT_THAT(control.failure()->text,
              testing::HasSubstr("ended without leaving the job: it stopped the store."));
}

TEST(StoreFarewell, TheServerDoesNotWaitForThoseThatAreNoRanks) {
  auto fastest = Clock::duration::max();
  for (int attempt = 0; attempt < kFarewells && fastest >= milliseconds(900); ++attempt) {
    StoreJob job(1);
    const Descriptor mute = connect_raw(job.address());
    {
      const Store member = job.rank(0);  // let in after the other was accepted
      member.connection()->leave();
    }
    const auto start = Clock::now();
    job.stop();
    fastest = std::min(fastest, Clock::now() - start);
  }
  EXPECT_LT(fastest, milliseconds(900));
}

}  // namespace
}  // namespace lockstep::dist
