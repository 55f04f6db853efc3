// Jobs whose ranks are on hosts with networks and names of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/launcher/elastic/elastic_job.h"
#include "tests/launcher/hosts/simulated_hosts.h"

namespace lockstep::launcher {
namespace {

class LostHosts : public ElasticJob {
 protected:
  static constexpr int kHosts = 4;

  void SetUp() override {
    ElasticJob::SetUp();
    hosts_ = std::make_unique<SimulatedHosts>(kHosts, folder_.path());
    if (!hosts_->why_not().empty()) GTEST_SKIP() << hosts_->why_not();
    address_ = SimulatedHosts::address(0) + ":4000";
  }

  Launched train_on(int host, const std::string& options) const {
    return train(options, 3, endless(), "", hosts_->on(host));
  }
  /// Three ranks, each on the host of its number.
  Processes start(const std::string& options = "") const {
    Processes started;
    for (int rank = 0; rank < 3; ++rank) {
      started.emplace_back(
          new Launched(train_on(rank, fmt::format("--ranks 3 --rank {} {}{}", rank, options,
                                                  rank == 0 ? " --run-dir run" : ""))));
    }
    EXPECT_TRUE(comes_true([&] { return steps() > 0; }));
    return started;
  }

  std::unique_ptr<SimulatedHosts> hosts_;
};

TEST_F(LostHosts, TheOthersGoOnWithTheSameBitsAlsoWithoutThatOfRank0) {
  const Processes ranks = start();
  ranks[0]->signal(SIGKILL);
  ASSERT_TRUE(ranks[1]->says("rank 0 on host node0 is lost"));
  EXPECT_TRUE(goes_on());
  ranks[2]->signal(SIGKILL);
  ASSERT_TRUE(ranks[1]->says("rank 1 on host node2 is lost"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[1].get()});
  expect_bits_of_undisturbed_run("one host is left");
}

TEST_F(LostHosts, AProcessThatWaitsFindsTheNextLeaderOnAnotherHost) {
  const Processes ranks = start();
  Launched spare = train_on(3, "--join");
  ASSERT_TRUE(spare.says("waiting until one is lost"));
  ranks[0]->signal(SIGKILL);
  ASSERT_TRUE(spare.says("looking for the one that takes its place"));
  ASSERT_TRUE(spare.says("as rank 2 of 3"));
  EXPECT_TRUE(ranks[1]->says("1 rank on host node3 has joined"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[1].get(), ranks[2].get(), &spare});
  expect_bits_of_undisturbed_run("with the spare");
}

TEST_F(LostHosts, OfANetworkThatIsCutTheSideWithTheLockGoesOn) {
  const Processes ranks =
      start("--set parallel.silence_seconds=2 --set parallel.elastic.wait_seconds=3");
  hosts_->cut_off(0);
  ASSERT_TRUE(ranks[0]->says("going on with 1 rank"));
  EXPECT_TRUE(goes_on());
  for (const int other : {1, 2}) {
    const Result result = ranks[static_cast<size_t>(other)]->end();
    EXPECT_EQ(result.status, 5) << result.errors;
    EXPECT_THAT(result.errors, testing::HasSubstr("lock"));
  }
  stop_and_expect_end({ranks[0].get()});
  expect_bits_of_undisturbed_run("rank 0 alone");
}

}  // namespace
}  // namespace lockstep::launcher
