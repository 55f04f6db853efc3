#include "dist/transport/shm_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/core/base/child_process.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/ranks.h"
#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// Small rings, so that they wrap around often.
ShmTransport::Options small_rings() { return {.ring_bytes = 16 << 10, .names = {}}; }

constexpr std::byte kUntouched{0xee};
bool is_untouched(const Sending& one) {
  return std::ranges::all_of(one.data, [](std::byte byte) { return byte == kUntouched; });
}

TEST(ShmTransport, AMessageArrivesWhicheverSideComesFirst) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather);
    EXPECT_EQ(transport.rank(), rank);
    EXPECT_EQ(transport.size(), 2);
    for (const int late : {0, 1}) {
      if (rank == late) std::this_thread::sleep_for(20ms);
      std::vector<std::byte> data = contents(7, 1000);
      Message message;
      if (rank == 0) {
        transport.send(1, 5, data.data(), data.size(), message);
      } else {
        data.assign(2000, std::byte{0});
        transport.receive(0, 5, data.data(), data.size(), message);
      }
      EXPECT_TRUE(drive(transport, message));
      EXPECT_EQ(message.state, Message::State::kDone) << message.error;
      EXPECT_EQ(message.bytes, 1000u);
      data.resize(1000);
      EXPECT_EQ(data, contents(7, 1000));
    }
  });
}

TEST(ShmTransport, ASleepEndsWhenAPeerLeavesWhetherThatWasBeforeOrIsMeanwhile) {
  for (const bool before : {true, false}) {
    std::atomic<bool> sleeps = false;
    run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
      auto transport = std::make_unique<ShmTransport>(rank, 2, all_gather);
      transport->progress();
      (void)all_gather("nothing is under way");
      if (rank == 1) {
        while (!before && !sleeps) std::this_thread::sleep_for(1ms);
        if (!before) std::this_thread::sleep_for(20ms);
        transport.reset();
      }
      if (before) (void)all_gather("rank 1 has left");
      if (rank == 1) return;
      sleeps = true;
      const auto start = Clock::now();
      transport->sleep(10s);
      EXPECT_LT(Clock::now() - start, 5s) << before;
    });
  }
}

/// Bytes of shared memory that this process has mapped and that have pages.
size_t allocated_shared_memory() {
  std::ifstream maps("/proc/self/maps");
  size_t bytes = 0;
  std::set<std::string> seen;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:lockstep") == std::string::npos) continue;
    std::istringstream words(line);
    size_t begin = 0, end = 0;
    char dash = 0;
    std::string mode, offset, device, inode;
    words >> std::hex >> begin >> dash >> end >> mode >> offset >> device >> inode;
    if (!seen.insert(inode).second) continue;  // mapped by several ranks
    std::vector<unsigned char> pages((end - begin) / 4096);
    EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
    bytes += 4096 * static_cast<size_t>(std::ranges::count_if(
                        pages, [](unsigned char page) { return (page & 1) != 0; }));
  }
  return bytes;
}

TEST(ShmTransport, OnlyRingsThatCarriedMessagesTakeMemory) {
  if (sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "pages of another size";
  constexpr size_t kBytes = 1 << 20;
  size_t at_first = 0, used = 0;
  run_as_threads(4, [&](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 4, all_gather, {.ring_bytes = kBytes, .names = {}});
    (void)all_gather("");
    if (rank == 0) at_first = allocated_shared_memory();
    (void)all_gather("");
    Message message;
    std::byte byte{1};
    if (rank == 0) transport.send(3, 1, &byte, 1, message);
    if (rank == 3) transport.receive(0, 1, &byte, 1, message);
    EXPECT_TRUE(drive(transport, message));
    (void)all_gather("");
    if (rank == 0) used = allocated_shared_memory();
    (void)all_gather("");
  });
  if (at_first > kBytes) GTEST_SKIP() << "Linux is older than 5.14";
  EXPECT_EQ(used - at_first, kBytes);
}

TEST(ShmTransport, RandomMessagesBetweenThreadsArriveInOrderAndWhole) {
  for (const int size : {2, 3}) {
    run_as_threads(size, [size](int rank, const AllGatherText& all_gather) {
      ShmTransport transport(rank, size, all_gather, small_rings());
      // Far more bytes than fit in a ring, and than may be sent without a receive.
      for (uint32_t seed = 0; seed < 10; ++seed) exchange_randomly(transport, seed, 200, 100'000);
      exchange_randomly(transport, 100, 3000, 300);
    });
  }
}

TEST(ShmTransport, RandomMessagesBetweenProcessesArriveInOrderAndWhole) {
  const auto statuses = run_as_processes(3, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 3, all_gather, small_rings());
    for (uint32_t seed = 0; seed < 5; ++seed) exchange_randomly(transport, seed, 200, 100'000);
    return !testing::Test::HasFailure();
  });
  EXPECT_THAT(statuses, testing::Each(0));
}

TEST(ShmTransport, AskedForInTheOppositeOrderLargeMessagesDoNotBlock) {
  constexpr int kMessages = 40;
  constexpr size_t kBytes = 50'000;
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather, small_rings());
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
    EXPECT_TRUE(drive(transport, out.front().message));
    for (const Sending& one : out) EXPECT_EQ(one.message.state, Message::State::kDone);
  });
}

TEST(ShmTransport, MessagesThatNobodyAsksForStayWithTheSenderBeyondTwoRings) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather, small_rings());
    constexpr size_t kBytes = 8 << 10;
    std::vector<Sending> all(10);
    if (rank == 0) {
      for (Sending& one : all) {
        one.data = contents(1, kBytes);
        transport.send(1, 1, one.data.data(), kBytes, one.message);
      }
      // Four messages fill two rings' worth. The receiver buffers these, but no more.
      EXPECT_TRUE(drive(transport, all[3].message));
      drive_for(transport, 50ms);
      EXPECT_EQ(all[4].message.state, Message::State::kPending);
      all_gather("the receiver may ask now");
    } else {
      drive_for(transport, 50ms);
      std::thread meeting([&] { all_gather(""); });
      drive_for(transport, 100ms);
      meeting.join();
      for (Sending& one : all) {
        one.data.resize(kBytes);
        transport.receive(0, 1, one.data.data(), kBytes, one.message);
      }
    }
    EXPECT_TRUE(drive(transport, all.back().message));
    for (const Sending& one : all) {
      EXPECT_EQ(one.message.state, Message::State::kDone) << one.message.error;
      EXPECT_TRUE(one.data == contents(1, kBytes));
    }
  });
}

TEST(ShmTransport, AMessageLongerThanItsPlaceFailsAndTheNextArrives) {
  for (const size_t bytes : {size_t{100}, size_t{50'000}, size_t{200'000}}) {
    for (const bool asked_late : {false, true}) {
      run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
        ShmTransport transport(rank, 2, all_gather, small_rings());
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
        EXPECT_TRUE(drive(transport, all[0].message));
        EXPECT_TRUE(drive(transport, all[1].message));
        EXPECT_EQ(all[1].message.state, Message::State::kDone) << all[1].message.error;
        EXPECT_TRUE(all[1].data == contents(3, bytes));
        if (rank == 0) return;
        EXPECT_EQ(all[0].message.state, Message::State::kFailed);
        EXPECT_THAT(all[0].message.error, HasSubstr("bytes were sent where"));
        EXPECT_EQ(all[0].message.bytes, bytes);
      });
    }
  }
}

TEST(ShmTransport, AReceiveThatIsCancelledHalfWayTouchesNoMemoryAndSparesTheNext) {
  constexpr size_t kBytes = 30'000;  // nearly two rings
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather, small_rings());
    Sending all[2];
    for (Sending& one : all) one.data = contents(1, kBytes);
    if (rank == 0) {
      for (Sending& one : all) transport.send(1, 1, one.data.data(), kBytes, one.message);
      all_gather("sent a part");
      all_gather("cancelled");
    } else {
      transport.receive(0, 1, all[0].data.data(), kBytes, all[0].message);
      all_gather("sent a part");
      transport.progress();
      transport.cancel(all[0].message);
      EXPECT_EQ(all[0].message.state, Message::State::kIdle);
      for (Sending& one : all) one.data.assign(kBytes, kUntouched);
      transport.receive(0, 1, all[1].data.data(), kBytes, all[1].message);
      all_gather("cancelled");
    }
    EXPECT_TRUE(drive(transport, all[1].message));
    EXPECT_TRUE(all[1].data == contents(1, kBytes));
    if (rank == 0) {
      EXPECT_EQ(all[0].message.state, Message::State::kDone) << all[0].message.error;
    } else {
      EXPECT_TRUE(is_untouched(all[0]));
    }
  });
}

TEST(ShmTransport, WhateverIsCancelledWhenTheRestArrives) {
  constexpr uint64_t kMessages = 60;
  constexpr uint64_t kLast = 1000;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    run_as_threads(2, [seed](int rank, const AllGatherText& all_gather) {
      ShmTransport transport(rank, 2, all_gather, small_rings());
      std::mt19937 plan(seed);
      std::mt19937 own(seed * 2 + static_cast<uint32_t>(rank));
      std::deque<Sending> all;
      std::vector<bool> cancelled_by[2];
      for (uint64_t tag = 0; tag < kMessages; ++tag) {
        const bool sends = (plan() % 2 == 0) == (rank == 0);
        const size_t bytes = plan() % 2 == 0 ? plan() % 60'000 : plan() % 100;
        cancelled_by[0].push_back(plan() % 4 == 0);
        cancelled_by[1].push_back(plan() % 4 == 0);
        Sending& one = all.emplace_back();
        one.data = sends ? contents(tag, bytes) : std::vector<std::byte>(bytes);
        if (sends) {
          transport.send(1 - rank, tag, one.data.data(), bytes, one.message);
        } else {
          transport.receive(1 - rank, tag, one.data.data(), bytes, one.message);
        }
        if (own() % 4 == 0) transport.progress();
        const uint64_t other = own() % (tag + 1);
        if (!cancelled_by[rank][other]) continue;
        Sending& victim = all[other];
        transport.cancel(victim.message);
        if (victim.message.state != Message::State::kIdle) continue;
        std::ranges::fill(victim.data, kUntouched);
      }
      Sending last{contents(9, 1), {}};
      if (rank == 0) {
        transport.send(1, kLast, last.data.data(), 1, last.message);
      } else {
        transport.receive(0, kLast, last.data.data(), 1, last.message);
      }
      EXPECT_TRUE(drive(transport, last.message)) << "seed " << seed;
      plan.seed(seed);
      for (uint64_t tag = 0; tag < kMessages; ++tag) {
        const bool sends = (plan() % 2 == 0) == (rank == 0);
        const size_t bytes = plan() % 2 == 0 ? plan() % 60'000 : plan() % 100;
        (void)plan();
        (void)plan();
        Sending& one = all[tag];
        if (!cancelled_by[0][tag] && !cancelled_by[1][tag]) {
          EXPECT_TRUE(drive(transport, one.message)) << "seed " << seed << ", tag " << tag;
          EXPECT_EQ(one.message.state, Message::State::kDone) << one.message.error;
        }
        if (one.message.state == Message::State::kDone && !sends) {
          EXPECT_TRUE(one.data == contents(tag, bytes)) << "seed " << seed << ", tag " << tag;
        }
        if (one.message.state == Message::State::kIdle) {
          EXPECT_TRUE(is_untouched(one)) << "seed " << seed << ", tag " << tag;
        }
      }
      all_gather("end");
    });
  }
}

TEST(ShmTransport, TheSenderThatCancelsHalfWayMakesTheReceiverFail) {
  constexpr size_t kBytes = 30'000;
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather, small_rings());
    Sending one{contents(1, kBytes), {}};
    if (rank == 0) {
      // Part of the message is in the ring; the receiver has not yet read it.
      transport.send(1, 1, one.data.data(), kBytes, one.message);
      transport.progress();
      EXPECT_EQ(one.message.state, Message::State::kPending);
      transport.cancel(one.message);
      all_gather("cancelled");
      drive_for(transport, 50ms);
      all_gather("end");
    } else {
      all_gather("cancelled");
      transport.receive(0, 1, one.data.data(), kBytes, one.message);
      EXPECT_TRUE(drive(transport, one.message));
      EXPECT_EQ(one.message.state, Message::State::kFailed);
      EXPECT_THAT(one.message.error, HasSubstr("given it up"));
      all_gather("end");
    }
  });
}

TEST(ShmTransport, APeerThatLeavesHasDeliveredWhatItSent) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    auto transport = std::make_unique<ShmTransport>(
        rank, 2, all_gather, ShmTransport::Options{.ring_bytes = 16 << 10, .names = {30, 31}});
    std::vector<Sending> all(3);
    for (Sending& one : all) one.data = contents(1, 4000);
    if (rank == 0) {
      for (Sending& one : all) transport->send(1, 1, one.data.data(), 4000, one.message);
      EXPECT_TRUE(drive(*transport, all.back().message));
      transport.reset();
      all_gather("gone");
      return;
    }
    all[0].data.assign(4000, std::byte{0});
    transport->receive(0, 1, all[0].data.data(), 4000, all[0].message);
    all_gather("gone");
    EXPECT_TRUE(drive(*transport, all[0].message));
    for (const size_t i : {1, 2}) {
      all[i].data.assign(4000, std::byte{0});
      transport->receive(0, 1, all[i].data.data(), 4000, all[i].message);
    }
    EXPECT_TRUE(drive(*transport, all[2].message));
    for (const Sending& one : all) {
      EXPECT_EQ(one.message.state, Message::State::kDone) << one.message.error;
      EXPECT_TRUE(one.data == contents(1, 4000));
    }
    Message more;
    transport->receive(0, 1, all[0].data.data(), 4000, more);
    EXPECT_TRUE(drive(*transport, more));
    EXPECT_EQ(more.state, Message::State::kFailed);
    EXPECT_THAT(more.error,
                HasSubstr("rank 30 (process " + std::to_string(getpid()) + ") has left"));
    transport->send(0, 1, all[0].data.data(), 4000, more);
    EXPECT_TRUE(drive(*transport, more));
    EXPECT_EQ(more.state, Message::State::kFailed);
  });
}

TEST(ShmTransport, APeerThatIsKilledFailsWhatIsPendingWithItSoon) {
  const auto statuses = run_as_processes(3, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 3, all_gather, small_rings());
    // More than one call transfers, however fast the receiver is.
    std::vector<std::byte> data(1'000'000);
    Message messages[2];
    if (rank == 1) {
      // Dies in the middle of a message.
      transport.send(0, 1, data.data(), data.size(), messages[0]);
      transport.progress();
      raise(SIGKILL);
    }
    const auto start = Clock::now();
    transport.receive(1, 1, data.data(), data.size(), messages[0]);
    std::vector<std::byte> other(100'000);
    transport.send(1, 2, other.data(), other.size(), messages[1]);
    bool well = true;
    for (Message& message : messages) {
      well = well && drive(transport, message) && message.state == Message::State::kFailed &&
             message.error.starts_with("rank 1 (process ") &&
             message.error.ends_with(") has ended");
    }
    well = well && Clock::now() - start < 10s;
    // The remaining ranks can still communicate.
    Message rest;
    if (rank == 0) transport.send(2, 3, data.data(), data.size(), rest);
    if (rank == 2) transport.receive(0, 3, data.data(), data.size(), rest);
    return well && drive(transport, rest) && rest.state == Message::State::kDone;
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL);
  EXPECT_EQ(statuses[2], 0);
}

TEST(ShmTransport, WakeEndsTheSleepThatIsAndTheNextOne) {
  const auto alone = [](const std::string& text) { return std::vector{text}; };
  ShmTransport transport(0, 1, alone);
  const auto start = Clock::now();
  transport.wake();
  transport.sleep(20s);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    transport.wake();
  });
  transport.sleep(20s);
  other.join();
  EXPECT_LT(Clock::now() - start, 15s);
}

TEST(ShmTransport, ASleepingRankUsesNoTime) {
  const auto alone = [](const std::string& text) { return std::vector{text}; };
  ShmTransport transport(0, 1, alone);
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  const auto end = Clock::now() + 200ms;
  while (Clock::now() < end) transport.sleep(50ms);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(used, 0.05);
}

TEST(ShmTransport, AFailingStartFailsOnAllRanks) {
  run_as_threads(3, [](int rank, const AllGatherText& all_gather) {
    // Rank 1 asks for another ring size.
    const size_t bytes = rank == 1 ? 32 << 10 : 16 << 10;
    std::string text = "no error";
    try {
      ShmTransport transport(rank, 3, all_gather, {.ring_bytes = bytes, .names = {}});
    } catch (const DistError& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("expected the same"));
  });
}

TEST(ShmTransport, AForkedChildThatEndsIsNoRankThatLeaves) {
  const auto statuses = run_as_processes(2, [](int rank, const AllGatherText& all_gather) {
    auto transport = std::make_unique<ShmTransport>(rank, 2, all_gather, small_rings());
    if (rank == 1) {
      const int status = status_of_child([&] {
        transport.reset();
        return true;
      });
      if (status != 0) return false;
    }
    all_gather("the child has ended");
    std::vector<std::byte> data(100'000);
    Message message;
    if (rank == 0) transport->receive(1, 1, data.data(), data.size(), message);
    if (rank == 1) transport->send(0, 1, data.data(), data.size(), message);
    const bool well = drive(*transport, message) && message.state == Message::State::kDone;
    all_gather("end");
    return well;
  });
  EXPECT_THAT(statuses, testing::Each(0));
}

TEST(ShmTransport, RingsAreAMebibyteUnlessAskedForOtherwise) {
  for (const size_t asked : {size_t{0}, size_t{16} << 10}) {
    run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
      const ShmTransport transport(rank, 2, all_gather, {.ring_bytes = asked, .names = {}});
      EXPECT_EQ(transport.segment_bytes(), (asked == 0 ? size_t{1} << 20 : asked) / 8);
      EXPECT_EQ(transport.window(), 16);
    });
  }
  const auto alone = [](const std::string& text) { return std::vector{text}; };
  for (const size_t asked : {size_t{8} << 10, size_t{24} << 10}) {
    expect_error<BackendError>(
        [&] { const ShmTransport transport(0, 1, alone, {.ring_bytes = asked, .names = {}}); },
        "[shm transport] a ring of " + std::to_string(asked) +
            " bytes: expected a power of two of at least 16384.");
  }
}

TEST(ShmTransport, ARankThatWaitsForAMessageLooksAfterItsPeersAndAnIdleOneSleepsOn) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    ShmTransport transport(rank, 2, all_gather, small_rings());
    auto start = Clock::now();
    transport.sleep(250ms);
    EXPECT_GE(Clock::now() - start, 240ms);
    std::byte byte{};
    Message message;
    transport.receive(1 - rank, 1, &byte, 1, message);
    start = Clock::now();
    transport.sleep(20s);
    EXPECT_LT(Clock::now() - start, 10s);
    EXPECT_GE(Clock::now() - start, 90ms);
    transport.cancel(message);
    EXPECT_EQ(message.state, Message::State::kIdle);
    all_gather("the end");
  });
}

TEST(ShmTransport, APeerThatLeavesIsNoticedWithoutASleep) {
  run_as_threads(2, [](int rank, const AllGatherText& all_gather) {
    auto transport = std::make_unique<ShmTransport>(rank, 2, all_gather, small_rings());
    if (rank == 0) transport.reset();
    all_gather("left");
    if (rank == 0) return;
    std::byte byte{};
    Message message;
    transport->receive(0, 1, &byte, 1, message);
    const auto deadline = Clock::now() + 10s;
    while (message.state == Message::State::kPending && Clock::now() < deadline) {
      transport->progress();
    }
    EXPECT_THAT(message.error, HasSubstr(") has left"));
  });
}

/// Errors of two ranks, of which rank 1 sees word `index` of rank 0's description as `word`.
std::vector<std::string> start_errors(size_t index, const std::string& word) {
  std::vector<std::string> errors(2);
  run_as_threads(2, [&](int rank, const AllGatherText& all_gather) {
    bool is_first = true;
    const auto gather = [&](const std::string& text) {
      std::vector<std::string> texts = all_gather(text);
      if (!std::exchange(is_first, false) || rank == 0) return texts;
      std::istringstream words(texts[0]);
      texts[0].clear();
      size_t at = 0;
      for (std::string each; words >> each; ++at) {
        texts[0] += (at == 0 ? "" : " ") + (at == index ? word : each);
      }
      return texts;
    };
    try {
      const ShmTransport transport(rank, 2, gather, small_rings());
    } catch (const DistError& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  });
  return errors;
}

TEST(ShmTransport, WhatOneRankCannotOpenIsToldOnAll) {
  const auto expect = [](size_t index, const std::string& word, const std::string& text) {
    const std::vector<std::string> errors = start_errors(index, word);
    EXPECT_THAT(errors[1], HasSubstr(text));
    EXPECT_EQ(errors[0], "[shm transport] another process of this machine failed: " + errors[1]);
  };
  const std::string pid = std::to_string(getpid());
  expect(3, "many", "describes no memory.");
  expect(2, "99999",
         "[shm transport] cannot open /proc/" + pid +
             "/fd/99999: No such file or directory. Raise `ulimit -n`.");
  expect(3, "32768",
         "[shm transport] rings of 16384 bytes here, of 32768 bytes on rank 0: expected the same.");
  expect(5, "7",
         "[shm transport] process " + pid +
             " holds other memory than it told of: it may be another process, of another "
             "container. Set LOCKSTEP_SHM=0 to do without shared memory.");
}

}  // namespace
}  // namespace lockstep::dist
