// How a store detects silent ranks: stopped processes, and ranks without a network.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_message.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/group/rank_processes.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class StoreLiveness : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer refuses threads in forked children";
  }
};

// Silence is allowed for 1 s; then a host that does not answer is lost within 2 s.
constexpr milliseconds kLongSilence{2'500};

TEST_F(StoreLiveness, ProcessesThatAreStoppedForLongAreNotLostAndGoOn) {
  // Stops the server, a rank, and a rank that is being sent more than its socket buffers hold.
  const RankProcesses server_stops(3, /*with_server=*/true);
  const RankProcesses rank_stops(3, /*with_server=*/true);
  const RankProcesses busy_rank_stops(3, /*with_server=*/true);
  server_stops.kill(0, SIGSTOP);
  rank_stops.kill(1, SIGSTOP);
  busy_rank_stops.kill(1, SIGSTOP);
  server_stops.tell(1, 's');
  EXPECT_EQ(busy_rank_stops.ask(2, 'p'), "posted");
  std::this_thread::sleep_for(kLongSilence);

  EXPECT_EQ(server_stops.ask(2, 'o'), "ok");
  server_stops.kill(0, SIGCONT);
  EXPECT_EQ(server_stops.ask(2, 's'), "ok");
  EXPECT_EQ(server_stops.failure(1), "ok");  // the reply to an earlier request
  for (const RankProcesses* ranks : {&rank_stops, &busy_rank_stops}) {
    EXPECT_EQ(ranks->ask(0, 'o'), "ok");
    EXPECT_EQ(ranks->ask(2, 's'), "ok");
    ranks->kill(1, SIGCONT);
    EXPECT_EQ(ranks->ask(1, 's'), "ok");
    ranks->kill(1, SIGKILL);
    EXPECT_THAT(ranks->failure(2), HasSubstr("1: rank 1"));
  }
}

/// Cuts or restores the network of the process's namespace, by dropping packets to 127.0.0.1.
bool set_network(bool up) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags =
      static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

constexpr int kNoNamespace = 77;

/// Runs `body` in a child with its own network namespace. Returns its exit status.
template <class Body>
int with_network_of_its_own(const Body& body) {
  const pid_t child = fork_when_idle();
  if (child == 0) {
    alarm(20);
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      _exit(kNoNamespace);
    }
    if (!set_network(true)) _exit(kNoNamespace);
    body();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Failure wait_for_failure(const JobControl& control) {
  for (int i = 0; i < 8'000; ++i) {
    if (const auto failure = control.failure()) return *failure;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return {-1, "none"};
}

TEST_F(StoreLiveness, ANetworkThatIsCutIsNoticedOnBothSidesWhetherOrNotAnythingIsSent) {
  const int status = with_network_of_its_own([] {
    const StoreJob silent_job(1);
    const StoreJob talking_job(2);
    StoreControl silent(silent_job.rank(0));
    StoreControl here(talking_job.rank(0));
    StoreControl there(talking_job.rank(1));
    ASSERT_TRUE(set_network(false));
    const auto start = Clock::now();
    there.post(0, "is anybody there?");
    for (const JobControl* control : {&silent, &here, &there}) {
      EXPECT_THAT(wait_for_failure(*control).text,
                  ContainsRegex("rank [01] .* is lost: its host, or the network to it, (does not "
                                "answer|has not answered for 1 s)"));
    }
    EXPECT_LT(Clock::now() - start, milliseconds(6000));
    ASSERT_TRUE(set_network(true));
  });
  if (status == kNoNamespace) GTEST_SKIP() << "this system gives no network namespace";
  EXPECT_EQ(status, 0);
}

/// Whether the other side has taken all that was sent.
bool is_acknowledged(const Descriptor& socket) {
  int waiting = 0;
  return ioctl(socket.get(), SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

TEST_F(StoreLiveness, ARankThatDoesNotTakeItsAnswerIsLost) {
  const int status = with_network_of_its_own([] {
    StoreServerOptions options = StoreJob::server_options(2);
    // Longer than it takes until there is an answer: an idle connection is asked whether it lives.
    options.silence = milliseconds(2500);
    const StoreServer server(options);
    const Connected rank =
        connect_to(parse_endpoint(server.address()), Clock::now() + milliseconds(5000));
    ASSERT_TRUE(rank.socket) << rank.error;
    using Kind = StoreMessage::Kind;
    const std::string bytes = encode({Kind::kHello,
                                      0,
                                      {kStoreProtocol, 0, 2, getpid()},
                                      {kStoreMagic, "job-a", "open sesame", "there"}}) +
                              encode({Kind::kGet, 1, {1000}, {"a key that nobody sets"}});
    ASSERT_EQ(send(rank.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    while (!is_acknowledged(rank.socket)) std::this_thread::sleep_for(milliseconds(1));
    // The server answers when the time of the request is over, into a network that is cut.
    ASSERT_TRUE(set_network(false));
    EXPECT_FALSE(server.wait_until_left(milliseconds(10'000)));
    ASSERT_TRUE(set_network(true));
    StoreControl other{Store(StoreJob::rank_options(1, 2, server.address()))};
    EXPECT_THAT(wait_for_failure(other).text,
                ContainsRegex("rank 0 .* is lost: its host, or the network to it, has not answered "
                              "for 2.5 s"));
  });
  if (status == kNoNamespace) GTEST_SKIP() << "this system gives no network namespace";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockstep::dist
