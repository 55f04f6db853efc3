// Training jobs when the link between their hosts is slow or cut. The hosts are network namespaces
// of this machine; making them needs root and the script two_hosts, which is next to the source in
// shared/net.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/owned_fd.h"
#include "tests/launcher/lost_ranks/faulty_job.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kHosts = LOCKSTEP_SOURCE_DIR "/../shared/net/two_hosts";

class LinkFaults : public FaultyJob {
 protected:
  void SetUp() override {
    FaultyJob::SetUp();
    if (IsSkipped()) return;
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes network namespaces";
    if (!std::filesystem::exists(kHosts)) GTEST_SKIP() << "no " << kHosts;
    // All tests share one pair of hosts.
    lock_ = OwnedFd(::open("/tmp/net.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    const bool free = comes_true([&] { return ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0; }, 60s);
    if (!free) GTEST_SKIP() << "the hosts are in use";
    is_up_ = true;
    (void)take_down();  // removes remains of a killed program
    const Result up = shell(fmt::format("'{}' up 1gbit 2", kHosts));
    if (up.status != 0) GTEST_SKIP() << "no network namespaces: " << up.errors;
  }
  void TearDown() override {
    FaultyJob::TearDown();
    if (is_up_) {
      EXPECT_EQ(take_down().status, 0);
    }
  }

  /// Starts one rank per host, for a model with 1.7 MB of gradients.
  Launched start_on_hosts(const std::string& more = "") const {
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 32 layers: 2 heads: 2 width: 128 } }\n"
             "data { random {} }\n"
             "train { steps: 1000000 batch_size: 2 log_every: 1000000 }\n"
             "checkpoint { every_steps: 0 }\n");
    return start_plain(
        fmt::format("-H lsh0:1,lsh1:1 --grace 5 --mca plm_rsh_agent '{}-agent' --mca btl "
                    "vader,tcp,self --mca orte_keep_fqdn_hostnames 1 --mca btl_tcp_if_include "
                    "10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 run.txtpb --run-dir run {}",
                    kHosts, more));
  }
  void set_rate(const std::string& rate) const {
    for (const char* host : {"lsh0", "lsh1"}) {
      EXPECT_EQ(shell(fmt::format("tc -n {} qdisc change dev eth0 root tbf rate {} burst 256kb "
                                  "latency 50ms",
                                  host, rate))
                    .status,
                0);
    }
  }

 private:
  /// Also deletes the links, which outlive the namespaces while a connection over a cut link does.
  Result take_down() const {
    return shell(
        fmt::format("'{}' down && for i in 0 1; do ip link del lsv$i 2>/dev/null; done; "
                    "! ip link show lsv0 2>/dev/null",
                    kHosts));
  }
  /// Starts launch itself on the first host.
  Launched start_plain(const std::string& line) const {
    put_file(folder_ / "launch.sh",
             fmt::format("cd '{}'\nexec '{}/lockstep' launch --allow-run-as-root {}\n",
                         folder_.path().string(), LOCKSTEP_BIN_DIR, line));
    return Launched::of(
        {kHosts + std::string("-agent"), "lsh0", "exec sh", (folder_ / "launch.sh").string()},
        folder_.path());
  }

  OwnedFd lock_;
  bool is_up_ = false;
};

TEST_F(LinkFaults, ALinkThatIsAHundredTimesSlowerIsNamedAndTrainingGoesOn) {
  Launched launched = start_on_hosts();
  wait_for_a_step(launched);
  set_rate("10mbit");
  EXPECT_TRUE(launched.says("s so far; "));
  set_rate("1gbit");
  EXPECT_TRUE(launched.says(" has ended after "));
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  // Either end may report it, and the ranks' requests to each other use the same slow link.
  EXPECT_THAT(result.errors, ContainsRegex("so far; (all have come, the data to and from rank "
                                           "[01] are slow|rank [01] has not answered)"));
}

TEST_F(LinkFaults, ALinkThatIsCutEndsTheJobAndNamesTheRankBehindIt) {
  Launched launched = start_on_hosts("--set parallel.timeout_seconds=5");
  wait_for_a_step(launched);
  EXPECT_EQ(shell("ip -n lsh1 link set eth0 down").status, 0);
  const auto cut = std::chrono::steady_clock::now();
  EXPECT_TRUE(launched.says("Error: ["));
  const Result result = launched.end();
  EXPECT_LT(std::chrono::steady_clock::now() - cut, 50s);
  // mpirun crashes when it has lost a host; what counts is the rank that failed first.
  EXPECT_EQ(result.status, 5) << result.errors;
  EXPECT_THAT(result.errors, AnyOf(HasSubstr("; rank 1 does not answer"),
                                   HasSubstr("PeerLostError: [dist] rank 1 failed: ")));
}

}  // namespace
}  // namespace lockstep::launcher
