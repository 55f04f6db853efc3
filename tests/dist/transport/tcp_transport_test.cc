#include "dist/transport/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "dist/rendezvous/tcp_mesh.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/ddp/ranks.h"
#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const std::string kSecret = "0123456789abcdef0123456789abcdef";

/// Ranks that only TCP connects.
TcpTransport::Options by_tcp(int rank, const AllGatherText& all_gather) {
  TcpTransport::Options options;
  options.shared_memory = false;
  options.connect = [=](const std::vector<int>& peers, const std::vector<bool>& near) {
    return connect_mesh(rank, kSecret, {"127.0.0.1"}, all_gather, peers, near, 20s);
  };
  return options;
}
/// Ranks of two "hosts": even ones and odd ones.
TcpTransport::Options on_two_hosts(int rank, const AllGatherText& all_gather) {
  TcpTransport::Options options = by_tcp(rank, all_gather);
  options.shared_memory = true;
  options.host = rank % 2 == 0 ? "a" : "b";
  return options;
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(TcpTransport, RandomMessagesArriveInOrderAndWhole) {
  for (const int size : {2, 3}) {
    run_as_threads(size, [size](int rank, const AllGatherText& all_gather) {
      TcpTransport transport(rank, size, all_gather, by_tcp(rank, all_gather));
      EXPECT_EQ(transport.size(), size);
      for (uint32_t seed = 0; seed < 10; ++seed) exchange_randomly(transport, seed, 200, 100'000);
      exchange_randomly(transport, 100, 3000, 300);
      // Far more than is sent without a receive.
      exchange_randomly(transport, 200, 300, 1'000'000);
      (void)all_gather("the end");
    });
  }
}

TEST(TcpTransport, ARankThatNeverSleepsReadsItsSocketsAllTheSame) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    std::vector<std::byte> data = contents(1, 1000);
    Message message;
    if (rank == 0) {
      for (int i = 0; i < 100; ++i) transport.progress();  // finds nothing to read
    }
    (void)all_gather("rank 0 has looked");
    if (rank == 1) {
      transport.send(0, 1, data.data(), data.size(), message);
      EXPECT_TRUE(drive(transport, message));
    } else {
      transport.receive(1, 1, data.data(), data.size(), message);
      const auto deadline = Clock::now() + 20s;
      while (message.state == Message::State::kPending && Clock::now() < deadline) {
        transport.progress();
      }
      EXPECT_EQ(message.state, Message::State::kDone);
    }
    (void)all_gather("the end");
  });
}

TEST(TcpTransport, DoesNotSleepOnAMessageThatIsStillToBeSent) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    for (int i = 0; i < 100; ++i) transport.progress();
    (void)all_gather("nothing is under way");
    if (rank == 0) {
      const std::vector<std::byte> data = contents(1, 1000);
      Message message;
      transport.send(1, 1, data.data(), data.size(), message);
      const auto start = Clock::now();
      transport.sleep(10s);
      EXPECT_LT(Clock::now() - start, 5s);
      EXPECT_TRUE(drive(transport, message));
    }
    (void)all_gather("the end");
  });
}

TEST(HostIdentity, TellsApartMachinesAndWhatIsToldApartOnThem) {
  const std::string identity = host_identity();
  EXPECT_EQ(identity, host_identity());
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  ASSERT_TRUE(std::getline(file, boot));
  EXPECT_THAT(identity, HasSubstr(boot));
  for (const char* kind : {"pid", "net"}) {
    const auto own = std::filesystem::read_symlink(std::string("/proc/self/ns/") + kind);
    EXPECT_THAT(identity, HasSubstr(own.string()));
  }
}

TEST(TcpTransport, JoinsHostsWhoseRanksShareMemory) {
  run_as_threads(5, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 5, all_gather, on_two_hosts(rank, all_gather));
    EXPECT_EQ(transport.host_count(), 2);
    EXPECT_EQ(transport.host_rank(), rank % 2);
    EXPECT_EQ(transport.local_rank(), rank / 2);
    EXPECT_EQ(transport.local_size(), rank % 2 == 0 ? 3 : 2);
    for (uint32_t seed = 0; seed < 5; ++seed) exchange_randomly(transport, seed, 300, 100'000);
    (void)all_gather("the end");
  });
}

TEST(TcpTransport, AskedForInTheOppositeOrderLargeMessagesDoNotBlock) {
  constexpr int kMessages = 60;
  constexpr size_t kBytes = 200'000;
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    std::vector<Sending> out(kMessages);
    std::vector<Sending> in(kMessages);
    for (uint64_t tag = 0; tag < kMessages; ++tag) {
      out[tag].data = contents(tag, kBytes);
      transport.send(1 - rank, tag, out[tag].data.data(), kBytes, out[tag].message);
    }
    for (uint64_t tag = kMessages; tag-- > 0;) {
      in[tag].data.resize(kBytes);
      transport.receive(1 - rank, tag, in[tag].data.data(), kBytes, in[tag].message);
      EXPECT_TRUE(drive(transport, in[tag].message)) << tag;
      EXPECT_TRUE(in[tag].data == contents(tag, kBytes));
    }
    const bool ended = drive(transport, [&] {
      return std::ranges::all_of(
          out, [](const Sending& one) { return one.message.state == Message::State::kDone; });
    });
    EXPECT_TRUE(ended);
    (void)all_gather("the end");
  });
}

TEST(TcpTransport, MessagesThatNobodyAsksForStayWithTheSenderBeyondTheLimit) {
  std::atomic<bool> may_ask = false;
  run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    constexpr size_t kBytes = TcpChannel::kEagerBytes / 4;
    std::vector<Sending> all(10);
    for (Sending& one : all) {
      one.data = rank == 0 ? contents(1, kBytes) : std::vector<std::byte>(kBytes);
      if (rank == 0) transport.send(1, 1, one.data.data(), kBytes, one.message);
    }
    if (rank == 0) {
      // The receiver must read meanwhile; it asks for nothing.
      EXPECT_TRUE(drive(transport, all[3].message));
      drive_for(transport, 50ms);
      EXPECT_EQ(all[4].message.state, Message::State::kPending);
      may_ask = true;
    } else {
      EXPECT_TRUE(drive(transport, [&] { return may_ask.load(); }));
      for (Sending& one : all) transport.receive(0, 1, one.data.data(), kBytes, one.message);
    }
    for (const Sending& one : all) {
      EXPECT_TRUE(drive(transport, one.message));
      EXPECT_EQ(one.message.state, Message::State::kDone) << one.message.error;
      EXPECT_TRUE(one.data == contents(1, kBytes));
    }
    (void)all_gather("the end");
  });
}

TEST(TcpTransport, AMessageLongerThanItsPlaceFailsAndTheNextArrives) {
  for (const size_t bytes : {size_t{100}, size_t{50'000}, 2 * TcpChannel::kEagerBytes}) {
    for (const bool asked_late : {false, true}) {
      run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
        TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
        Sending all[2];
        if (rank == 1 && asked_late) drive_for(transport, 10ms);
        for (Sending& one : all) {
          one.data = contents(3, bytes);
          const size_t room = &one == all ? bytes - 1 : bytes;
          if (rank == 0) {
            transport.send(1, 1, one.data.data(), bytes, one.message);
          } else {
            one.data.assign(bytes, std::byte{0});
            transport.receive(0, 1, one.data.data(), room, one.message);
          }
        }
        for (const Sending& one : all) EXPECT_TRUE(drive(transport, one.message));
        if (rank == 1) {
          EXPECT_EQ(all[0].message.state, Message::State::kFailed);
          EXPECT_EQ(all[0].message.bytes, bytes);
          EXPECT_TRUE(all[1].data == contents(3, bytes));
        }
        EXPECT_EQ(all[1].message.state, Message::State::kDone) << all[1].message.error;
        (void)all_gather("the end");
      });
    }
  }
}

TEST(TcpTransport, ACancelledMessageTouchesNoMemoryAndTheNextArrives) {
  constexpr size_t kBytes = 2 * TcpChannel::kEagerBytes + 1;
  for (const int canceller : {0, 1}) {
    for (const size_t bytes : {size_t{1000}, TcpChannel::kEagerBytes, kBytes}) {
      run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
        TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
        Sending first;
        first.data = rank == 0 ? contents(4, bytes) : std::vector<std::byte>(bytes);
        const auto post = [&](Sending& one, uint64_t tag) {
          if (rank == 0) transport.send(1, tag, one.data.data(), bytes, one.message);
          if (rank == 1) transport.receive(0, tag, one.data.data(), bytes, one.message);
        };
        post(first, 1);
        transport.progress();
        if (rank == canceller && first.message.state == Message::State::kPending) {
          transport.cancel(first.message);
          EXPECT_EQ(first.message.state, Message::State::kIdle);
          std::ranges::fill(first.data, std::byte{0xee});
        }
        Sending second;
        second.data = rank == 0 ? contents(5, bytes) : std::vector<std::byte>(bytes);
        post(second, 2);
        EXPECT_TRUE(drive(transport, second.message));
        EXPECT_EQ(second.message.state, Message::State::kDone) << second.message.error;
        EXPECT_TRUE(second.data == contents(5, bytes));
        if (rank == canceller && first.message.state == Message::State::kIdle) {
          EXPECT_TRUE(
              std::ranges::all_of(first.data, [](std::byte b) { return b == std::byte{0xee}; }));
        } else if (rank == 1 && first.message.state == Message::State::kDone) {
          EXPECT_TRUE(first.data == contents(4, bytes));
        }
        (void)all_gather("the end");
      });
    }
  }
}

TEST(TcpTransport, WhatWasSentArrivesAfterItsSenderHasLeftAndOtherMessagesFail) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    auto transport = std::make_unique<TcpTransport>(rank, 2, all_gather, by_tcp(rank, all_gather));
    Sending sent;
    sent.data = rank == 0 ? contents(6, 5000) : std::vector<std::byte>(5000);
    if (rank == 0) {
      transport->send(1, 1, sent.data.data(), sent.data.size(), sent.message);
      EXPECT_TRUE(drive(*transport, sent.message));
      transport.reset();
      (void)all_gather("left");
      return;
    }
    (void)all_gather("");
    Message never;
    std::byte byte{};
    transport->receive(0, 1, sent.data.data(), sent.data.size(), sent.message);
    transport->receive(0, 2, &byte, 1, never);
    EXPECT_TRUE(drive(*transport, sent.message));
    EXPECT_TRUE(sent.data == contents(6, 5000));
    EXPECT_TRUE(drive(*transport, never));
    EXPECT_EQ(never.state, Message::State::kFailed);
    EXPECT_THAT(never.error, HasSubstr("rank 0 has closed its connection"));
    Message later;
    transport->send(0, 3, &byte, 1, later);
    EXPECT_EQ(later.state, Message::State::kFailed);
  });
}

TEST(TcpTransport, MessagesOfAKilledProcessFail) {
  const auto statuses = run_as_processes(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    std::byte byte{};
    Message message;
    transport.receive(1 - rank, 1, &byte, 1, message);
    if (rank == 1) raise(SIGKILL);
    return drive(transport, message) && message.state == Message::State::kFailed;
  });
  EXPECT_EQ(statuses[0], 0);
}

TEST(TcpTransport, WaitingForAMessageUsesLittleTime) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    std::byte byte{};
    Message message;
    if (rank == 0) {
      drive_for(transport, 300ms);
      transport.send(1, 1, &byte, 1, message);
      EXPECT_TRUE(drive(transport, message));
    } else {
      const double before = thread_seconds();
      transport.receive(0, 1, &byte, 1, message);
      EXPECT_TRUE(drive(transport, message));
      EXPECT_LT(thread_seconds() - before, 0.1);
    }
    (void)all_gather("the end");
  });
}

TEST(TcpTransport, AWakeEndsASleepWithoutAMessage) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    TcpTransport transport(rank, 2, all_gather, by_tcp(rank, all_gather));
    transport.progress();
    const auto start = Clock::now();
    std::thread waker([&] { transport.wake(); });
    transport.sleep(20s);
    waker.join();
    EXPECT_LT(Clock::now() - start, 10s);
    (void)all_gather("the end");
  });
}

}  // namespace
}  // namespace lockstep::dist
