// Connections to a store's server from programs that are no ranks of its job, and ranks that find
// another program at the store's address.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_limits.h"
#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_server.h"
#include "tests/core/base/child_process.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"
#include "tests/dist/rendezvous/raw_client.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

/// UBSan has no macro; this project enables it together with AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kUndefinedSanitizer = true;
#else
constexpr bool kUndefinedSanitizer = false;
#endif

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

void expect_works(Store& store) {
  const int64_t times = store.add("times", 1);
  EXPECT_EQ(store.get("times"), std::to_string(times));
}

TEST(StoreFaults, AStrayRankOfAnotherJobIsRefusedOnBothSides) {
  StoreJob job(2);
  Store member = job.rank(0);
  StoreOptions stray = job.options(1);
  stray.job = "job-b";
  expect_error<DistError>([&] { Store store(stray); }, "does not let rank 1 in", job.address(),
                          "of job \"job-b\"", "this is job \"job-a\"");
  EXPECT_THAT(job.server().refusals(), Contains(HasSubstr("of job \"job-b\"")));
  stray.job = "\x1b[2Jjob\n" + std::string(1000, 'x');
  expect_error<DistError>([&] { Store store(stray); }, "of job \"?[2Jjob?xxx", "xxx...\", this");
  expect_works(member);
  Store right = job.rank(1);
  expect_works(right);
}

TEST(StoreFaults, AWrongSecretIsRefusedWithoutTellingTheRightOne) {
  StoreJob job(2);
  for (const char* secret : {"", "open sesam", "open sesame!", "Open sesame"}) {
    StoreOptions stray = job.options(1);
    stray.secret = secret;
    expect_error<DistError>([&] { Store store(stray); }, "does not know the secret of job");
  }
  EXPECT_EQ(job.server().refusals().size(), 4U);
  for (const std::string& text : job.server().refusals()) {
    EXPECT_THAT(text, Not(HasSubstr("sesame")));
  }
  Store right = job.rank(1);
  expect_works(right);
}

TEST(StoreFaults, AnotherWorldSizeIsAMismatchWithBothNumbers) {
  StoreJob job(2);
  StoreOptions other = job.options(1);
  other.world_size = 8;
  expect_error<MismatchError>([&] { Store store(other); }, "rank 1 (host ",
                              "for a world of 8 ranks, the job has 2");
  other.rank = 5;
  expect_error<MismatchError>([&] { Store store(other); }, "rank 5 (host ");
}

TEST(StoreFaults, ASecondProcessOfARankIsRefusedAndTheFirstGoesOn) {
  StoreJob job(2);
  Store first = job.rank(1);
  expect_error<DistError>([&] { Store second(job.options(1)); }, "there is rank 1 (host ",
                          "already");
  expect_works(first);
}

TEST(StoreFaults, ATimeoutTellsWhoWasRefused) {
  StoreJob job(2);
  Store member = job.rank(0);
  StoreOptions stray = job.options(1);
  stray.job = "job-b";
  expect_error<DistError>([&] { Store store(stray); }, "job-b");
  expect_error<TimeoutError>([&] { member.join(milliseconds(10)); }, "Never connected: rank 1.",
                             "was refused: it is of job \"job-b\"");
}

TEST(StoreFaults, WhatIsNoMessageIsSentAway) {
  StoreJob job(1);
  Store member = job.rank(0);
  const std::string huge_length = std::string("\xff\xff\xff\x7f", 4);
  const std::string no_kind = std::string("\x0c\0\0\0", 4) + std::string(12, '\0');
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string("SSH-2.0-scan\r\n"),
        huge_length, no_kind, std::string(100'000, '\xee')}) {
    const Descriptor socket = connect_raw(job.address());
    send_raw(socket, bytes);
    EXPECT_TRUE(is_ended(socket)) << bytes.substr(0, 20);
  }
  EXPECT_THAT(job.server().refusals(), Contains(HasSubstr("no message of a store")));
  expect_works(member);
}

RC_GTEST_PROP(StoreFaults, AnyBytesLeaveTheServerAsItWas, ()) {
  static const StoreJob job(1);
  static Store member = job.rank(0);
  std::string bytes = *rc::gen::arbitrary<std::string>();
  if (*rc::gen::arbitrary<bool>()) {
    // A valid hello with some random bytes changed.
    bytes = encode({StoreMessage::Kind::kHello,
                    0,
                    {kStoreProtocol, 0, 1, 1},
                    {kStoreMagic, "job-a", "open sesame", "host"}});
    bytes[*rc::gen::inRange<size_t>(0, bytes.size())] ^=
        static_cast<char>(*rc::gen::inRange(1, 256));
  }
  const Descriptor socket = connect_raw(job.address());
  send_raw(socket, bytes);
  const int64_t times = member.add("n", 1);
  RC_ASSERT(member.get("n") == std::to_string(times));
}

TEST(StoreFaults, AMemberThatSendsNoMessageIsTheJobsFailure) {
  StoreJob job(2);
  Store member = job.rank(0);
  const Descriptor socket = connect_raw(job.address());
  send_raw(socket, encode({StoreMessage::Kind::kHello,
                           0,
                           {kStoreProtocol, 1, 2, 77},
                           {kStoreMagic, "job-a", "open sesame", "there"}}));
  member.join();
  send_raw(socket, std::string("\xff\xff\xff\x7f", 4));
  expect_error<PeerLostError>([&] { (void)member.get("never"); },
                              "rank 1 (host there, pid 77) is lost: it sent");
}

TEST(StoreFaults, ManyThatSayNothingKeepNoRankOut) {
  StoreJob job(2);
  std::vector<Descriptor> mute;
  for (int i = 0; i < 300; ++i) mute.push_back(connect_raw(job.address()));
  Store member = job.rank(0);
  expect_works(member);
  EXPECT_TRUE(is_ended(mute.front())) << "the oldest make way";
}

TEST(StoreFaults, ManyRanksConnectAtOnce) {
  constexpr int kRanks = 64;
  const StoreJob job(kRanks);
  std::atomic<int> seen{0};
  job.on_ranks([&seen](Store& store) {
    store.join();
    store.add("joined", 1);
    store.barrier("all");
    // Behind the barrier every rank finds what all of them wrote before it.
    if (store.add("joined", 0) == kRanks) ++seen;
    store.barrier("read");
    store.connection()->leave();
  });
  EXPECT_EQ(seen, kRanks);
}

/// Uses up all file descriptors that the process may still open but `spare`, while alive.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    taken_.emplace_back(open_one());
    rlimit fewer = before_;
    fewer.rlim_cur = static_cast<rlim_t>(taken_[0].get() + 32);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    for (int fd = open_one(); fd >= 0; fd = open_one()) taken_.emplace_back(fd);
    for (int i = 0; i < spare; ++i) taken_.pop_back();
  }
  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  static int open_one() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

  rlimit before_{};
  std::vector<Descriptor> taken_;
};

TEST(StoreFaults, AServerWithoutFileDescriptorsSaysSoAndTheOthersGoOn) {
  if (kUndefinedSanitizer) GTEST_SKIP() << "the sanitizer needs descriptors to look at objects";
  StoreJob job(3);
  Store member = job.rank(0);
  {
    // Enough for the client's socket, not for the server's end of the connection.
    const FewDescriptors few(1);
    const Descriptor socket = connect_raw(job.address());
    send_raw(socket, encode({StoreMessage::Kind::kHello,
                             0,
                             {kStoreProtocol, 1, 3, 77},
                             {kStoreMagic, "job-a", "open sesame", "there"}}));
    char bytes[1024] = {};
    ASSERT_TRUE(wait_for(socket, false, Clock::now() + milliseconds(5000)));
    const ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    ASSERT_GT(got, 0);
    EXPECT_THAT(std::string(bytes, static_cast<size_t>(got)),
                AllOf(HasSubstr("no file descriptor left"), HasSubstr("ulimit -n")));
    expect_works(member);
  }
  EXPECT_THAT(job.server().refusals(), Contains(HasSubstr("no file descriptor left")));
  Store later = job.rank(1);
  expect_works(later);
}

TEST(StoreFaults, WithoutFileDescriptorsThoseThatSayNothingMakeWay) {
  if (kUndefinedSanitizer) GTEST_SKIP() << "the sanitizer needs descriptors to look at objects";
  StoreJob job(2);
  Store member = job.rank(0);
  std::vector<Descriptor> mute;
  for (int i = 0; i < 3; ++i) mute.push_back(connect_raw(job.address()));
  expect_works(member);  // waits until the server has accepted them
  const FewDescriptors few(2);
  Store late = job.rank(1);
  expect_works(late);
}

TEST(StoreFaults, ARankWithoutFileDescriptorsIsToldAtOnce) {
  if (kUndefinedSanitizer) GTEST_SKIP() << "the sanitizer needs descriptors to look at objects";
  const StoreJob job(1);
  const FewDescriptors few(0);
  expect_error<BackendError>([&] { Store store(job.options(0)); }, "no file descriptor is left",
                             "ulimit -n");
}

/// Runs `body` as a server for one connection, while `rank` connects to its address.
template <class Body>
void with_other_server(const Body& body, const std::function<void(const std::string&)>& rank) {
  Endpoint endpoint{"127.0.0.1", 0};
  const Descriptor listener = listen_at(endpoint);
  std::thread thread([&] {
    if (!wait_for(listener, false, Clock::now() + milliseconds(5000))) return;
    body(accept_at(listener).socket);
  });
  rank(to_string(endpoint));
  thread.join();
}

TEST(StoreFaults, ARankThatFindsAnotherProgramSaysSo) {
  with_other_server(
      [](const Descriptor& socket) {
        send_raw(socket, "220 mail.example.org ESMTP\r\n");
        std::this_thread::sleep_for(milliseconds(50));
      },
      [](const std::string& address) {
        expect_error<DistError>([&] { Store store(StoreJob::rank_options(0, 1, address)); },
                                address, "is no store of a job");
      });
}

TEST(StoreFaults, ARankThatIsNotAnsweredSaysSoAtTheJoinTimeout) {
  with_other_server([](const Descriptor&) { std::this_thread::sleep_for(milliseconds(150)); },
                    [](const std::string& address) {
                      StoreOptions options = StoreJob::rank_options(0, 1, address);
                      options.join_timeout = milliseconds(100);
                      expect_error<TimeoutError>([&] { Store store(options); }, address,
                                                 "does not answer");
                    });
}

TEST(StoreFaults, ARankWhoseConnectionIsClosedUnansweredConnectsAgain) {
  with_other_server([](const Descriptor&) {},  // closes the first connection, and takes no other
                    [](const std::string& address) {
                      StoreOptions options = StoreJob::rank_options(0, 1, address);
                      options.join_timeout = milliseconds(300);
                      expect_error<TimeoutError>([&] { Store store(options); }, address,
                                                 "does not answer");
                    });
}

StoreMessage wait_for_message(Connection& connection) {
  std::string why;
  while (true) {
    if (auto message = connection.next()) return *message;
    EXPECT_TRUE(wait_for(connection.socket(), false, Clock::now() + milliseconds(5000)));
    if (!connection.receive(why)) return {};
  }
}

TEST(StoreFaults, AValueThatTheServerReadsLateGoesOnWithItsFirstRead) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer reads a large value for a second";
  // A rank looks at its connection once a second anyway, and the socket holds a part of the value.
  // The fastest of several values tells whether they wait for that, whatever else the machine does.
  constexpr auto kWithoutWaiting = kLivenessInterval * 4 / 5;
  auto fastest = Clock::duration::max();
  for (int i = 0; i < 20 && fastest >= kWithoutWaiting; ++i) {
    with_other_server(
        [&](const Descriptor& socket) {
          using Kind = StoreMessage::Kind;
          Connection rank(Descriptor(::dup(socket.get())), kLargestStoreMessage);
          (void)wait_for_message(rank);
          rank.send({Kind::kWelcome, 0, {0, ::getpid(), 0}, {kStoreMagic, "here"}});
          const auto start = Clock::now();
          std::this_thread::sleep_for(milliseconds(100));  // the rank fills the socket
          const StoreMessage message = wait_for_message(rank);
          fastest = std::min(fastest, Clock::now() - start);
          EXPECT_EQ(message.kind, Kind::kSet);
          rank.send({Kind::kAnswer, message.id, {static_cast<int64_t>(StoreStatus::kOk)}, {""}});
        },
        [](const std::string& address) {
          Store store(StoreJob::rank_options(0, 1, address));
          store.set("k", std::string(15 << 20, 'x'));
        });
  }
  EXPECT_LT(fastest, kWithoutWaiting);
}

TEST(StoreFaults, AFailureThatAServerDoesNotConfirmIsKnownHereAfterASecondAndStaysTheFirst) {
  std::promise<void> over;
  with_other_server(
      [&](const Descriptor& socket) {
        Connection rank(Descriptor(::dup(socket.get())), kLargestStoreMessage);
        (void)wait_for_message(rank);
        rank.send({StoreMessage::Kind::kWelcome, 0, {0, ::getpid(), 0}, {kStoreMagic, "here"}});
        over.get_future().wait();
      },
      [&](const std::string& address) {
        StoreControl control(Store(StoreJob::rank_options(0, 1, address)));
        control.fail("no luck");
        control.fail("something that follows from it");
        EXPECT_TRUE(comes_true([&] { return control.failure().has_value(); }));
        over.set_value();
        ASSERT_TRUE(control.failure());
        EXPECT_EQ(control.failure()->rank, 0);
        EXPECT_EQ(control.failure()->text, "no luck");
      });
}

TEST(StoreFaults, ARankThatIsAnotherBuildsIsToldBothVersions) {
  StoreJob job(1);
  const Descriptor socket = connect_raw(job.address());
  send_raw(socket, encode({StoreMessage::Kind::kHello, 0, {kStoreProtocol + 1}, {kStoreMagic}}));
  EXPECT_TRUE(is_ended(socket));
  EXPECT_THAT(job.server().refusals(), Contains(HasSubstr("version 3 of the store's protocol")));
}

}  // namespace
}  // namespace lockstep::dist
