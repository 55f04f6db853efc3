// Training jobs in groups of ranks that keep a model together (HYBRID_SHARD), which lose and win
// members while the others go on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/launcher/elastic/elastic_job.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kInPairs =
    "--set parallel.strategy=HYBRID_SHARD --set parallel.shard_size=2 ";

class ElasticGroups : public ElasticJob {
 protected:
  Launched launch(const std::string& faults, const std::string& options = "",
                  const std::string& more = "") const {
    return DisturbedRun::start(faults, "--elastic " + options, kInPairs + more);
  }
  /// Every step has one line, with the loss and the evaluation of the undisturbed run.
  void expect_undisturbed(const std::string& what) const {
    expect_undisturbed_weights(what);
    int64_t next = 1;
    for (const nlohmann::json& line : lines_of("metrics.jsonl")) {
      if (!line.contains("step")) continue;
      EXPECT_EQ(line["step"], next) << what;
      ++next;
    }
    EXPECT_EQ(next, 21) << what;
    const Result compared = run("compare run undisturbed");
    EXPECT_EQ(compared.status, 0) << what << "\n" << compared.output;
  }
  void forget_run() const {
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
  static std::string in_pairs() { return kInPairs + endless(); }
  static bool kill_and_wait(const Processes& ranks, size_t lost, size_t leader) {
    ranks[lost]->signal(SIGKILL);
    return ranks[leader]->says("; going on with 2 ranks");
  }
};

TEST_F(ElasticGroups, TheGroupsThatAreLeftComeToTheBitsOfAnUndisturbedRun) {
  struct Row {
    const char* when;
    const char* faults;
    const char* told;
  };
  const std::vector<Row> rows = {
      {"a rank, in the third step", "3:relu:5:kill", "rank 2 waits for others"},
      {"the leader", "0:relu:5:kill", "rank 1 waits for others"},
      {"the leader's companion", "1:relu:5:kill", "rank 2 waits for others"},
      {"the leader, by a crash in backward", "0:threshold_backward:7:segv", "with 2 ranks from"},
      {"a group", "2:relu:5:kill,3:relu:5:kill", "going on with 2 ranks from"},
      {"the leader's group", "0:relu:5:kill,1:relu:5:kill", "going on with 2 ranks from"},
      {"one of each group", "0:relu:5:kill,3:relu:5:kill", "going on with 2 ranks from"},
      {"a rank, once its gradients are there", "3:_block_square_sums:8:kill", "with 2 ranks from"},
      {"the leader, once its gradients are there", "0:_block_square_sums:8:kill", "with 2 ranks"},
      {"a rank in the evaluation after step 5", "1:relu:11:kill", "with 2 ranks from step 5"},
      {"by an exception", "2:relu:3:throw", "rank 3 waits for others"},
  };
  for (const Row& row : rows) {
    const Result result = launch(row.faults).end();
    EXPECT_EQ(result.status, 0) << row.when << "\n" << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(row.told)) << row.when;
    EXPECT_THAT(result.errors, Not(HasSubstr("restart"))) << row.when;
    expect_undisturbed(row.when);
    const std::vector<nlohmann::json> losses = lines_of("restarts.jsonl");
    ASSERT_FALSE(losses.empty()) << row.when;
    EXPECT_EQ(losses.back()["ranks_left"], 2) << row.when;
    EXPECT_EQ(losses.back()["steps_again"], 0) << row.when;
    EXPECT_TRUE(losses.back()["training_again_s"].is_number()) << row.when << losses.back();
    forget_run();
  }
}

TEST_F(ElasticGroups, AnotherGroupLeadsWhereTheLeadersIsBrokenAgainAndAgain) {
  for (const bool loses_leader : {true, false}) {
    const Processes ranks = start(6, 6, in_pairs());
    // The first group is broken, and then that of the rank that leads.
    ranks[loses_leader ? 0 : 1]->signal(SIGKILL);
    const size_t leader = loses_leader ? 2 : 0;
    ASSERT_TRUE(ranks[leader]->says("; going on with 4 ranks from")) << loses_leader;
    const size_t waits = loses_leader ? 1 : 4;
    ASSERT_TRUE(ranks[waits]->says("joining at the end of a step")) << loses_leader;
    EXPECT_TRUE(goes_on()) << loses_leader;
    // Rank 0 has taken the place of rank 4.
    const size_t second = loses_leader ? 3 : 5;
    ranks[second]->signal(SIGKILL);
    // One more rank waits then, with which the first one makes a group.
    ASSERT_TRUE(ranks[waits]->says("joined the run")) << loses_leader;
    EXPECT_TRUE(goes_on()) << loses_leader;
    std::vector<Launched*> all = {ranks[leader].get()};
    for (size_t rank = 0; rank < 6; ++rank) {
      const bool is_lost = rank == second || rank == (loses_leader ? 0U : 1U);
      if (rank != leader && !is_lost) all.push_back(ranks[rank].get());
    }
    stop_and_expect_end(all);
    for (const nlohmann::json& change : lines_of("restarts.jsonl")) {
      EXPECT_EQ(change["restart"], 0) << change;
      EXPECT_EQ(change["steps_again"], 0) << change;
    }
    expect_bits_of_undisturbed_run(loses_leader ? "without leaders" : "without their companions");
    forget_run();
  }
}

TEST_F(ElasticGroups, ARankMayBeLostAtAnyMomentWhileStatesAreSaved) {
  for (const char* more : {"--set checkpoint.every_steps=1",
                           "--set checkpoint.every_steps=1 --set checkpoint.asynchronous=true",
                           "--set checkpoint.memory_every=1"}) {
    for (int i = 0; i < 6; ++i) {
      const std::string faults = fmt::format("{}:_block_square_sums:{}:kill:{}", i % 4, 3 + i, i);
      const Result result = launch(faults, "", more).end();
      const std::string what = faults + " " + more;
      EXPECT_EQ(result.status, 0) << what << "\n" << result.errors;
      EXPECT_THAT(result.errors, Not(HasSubstr("restart"))) << what;
      expect_undisturbed_weights(what);
      forget_run();
    }
  }
}

TEST_F(ElasticGroups, AProcessThatComesCompletesTheGroupOfARankThatWaits) {
  for (const size_t lost : {3, 0, 1}) {
    const Processes ranks = start(4, 4, in_pairs());
    const size_t leader = lost == 0 ? 2 : 0;
    const size_t spare = lost == 0 ? 1 : 2;
    ASSERT_TRUE(kill_and_wait(ranks, lost, leader)) << lost;
    ASSERT_TRUE(ranks[spare]->says("joining at the end of a step, once there are so many"));
    EXPECT_TRUE(goes_on()) << lost;
    Launched newcomer = train("--join", 4, in_pairs());
    ASSERT_TRUE(newcomer.says("joined the run")) << lost;
    ASSERT_TRUE(ranks[spare]->says("joined the run")) << lost;
    EXPECT_TRUE(goes_on()) << lost;
    std::vector<Launched*> all = {ranks[leader].get(), &newcomer};
    for (size_t rank = 0; rank < 4; ++rank) {
      if (rank != lost && rank != leader) all.push_back(ranks[rank].get());
    }
    stop_and_expect_end(all);
    const std::vector<nlohmann::json> changes = lines_of("restarts.jsonl");
    ASSERT_EQ(changes.size(), 2) << lost;
    EXPECT_EQ(changes[0]["ranks_waiting"], 1);
    EXPECT_EQ(changes[1]["ranks"], 2);
    EXPECT_EQ(changes[1]["ranks_left"], 4);
    EXPECT_EQ(changes[1]["ranks_joined"], 2);
    EXPECT_EQ(changes[1]["state_sent"], 0) << "parts are taken while the ranks train";
    EXPECT_EQ(changes[1]["steps_again"], 0);
    expect_bits_of_undisturbed_run(fmt::format("without rank {}", lost));
    forget_run();
  }
}

TEST_F(ElasticGroups, AGroupOfProcessesJoinsWhichMayThenBeAllThatIsLeft) {
  const Processes ranks = start(2, 4, in_pairs());
  Launched third = train("--join", 4, in_pairs());
  ASSERT_TRUE(third.says("once there are so many"));
  EXPECT_TRUE(goes_on());
  Launched fourth = train("--join", 4, in_pairs());
  ASSERT_TRUE(third.says("joined the run"));
  ASSERT_TRUE(fourth.says("joined the run"));
  EXPECT_TRUE(goes_on());
  ranks[0]->signal(SIGKILL);
  ranks[1]->signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return lines_of("restarts.jsonl").size() >= 2; }));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({&third, &fourth});
  expect_bits_of_undisturbed_run("the second group");
}

TEST_F(ElasticGroups, AProcessThatIsLostAsItJoinsStopsNobody) {
  const Processes ranks = start(4, 4, in_pairs());
  ASSERT_TRUE(kill_and_wait(ranks, 3, 0));
  for (const char* fault : {"7:load:1:kill", "7:relu:1:kill", "7:_block_square_sums:1:kill"}) {
    Launched other = train("--join", 4, in_pairs(),
                           fmt::format("RANK_FAULT={} OMPI_COMM_WORLD_RANK=7 "
                                       "OMPI_COMM_WORLD_SIZE=8 LOCKSTEP_TRANSPORT=tcp",
                                       fault));
    EXPECT_GE(other.end().status, 128) << fault;
    EXPECT_TRUE(goes_on()) << fault;
  }
  Launched last = train("--join", 4, in_pairs());
  ASSERT_TRUE(last.says("as rank 3 of 4"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), ranks[2].get(), &last});
  expect_bits_of_undisturbed_run("four ranks");
}

TEST_F(ElasticGroups, TheLauncherBringsALostRankBackToItsGroup) {
  Launched launched = DisturbedRun::start(
      "9:relu:1:kill", "--elastic --restart-delay 0.01 --max-restarts 3", in_pairs());
  ASSERT_TRUE(comes_true([&] { return steps() > 0; }));
  for (const int lost : {3, 0}) {
    pid_t pid = 0;
    for (const pid_t each : descendants(launched.pid())) {
      const std::string name = fmt::format("OMPI_COMM_WORLD_RANK={}", lost);
      std::ifstream file(fmt::format("/proc/{}/environ", each), std::ios::binary);
      const std::string variables{std::istreambuf_iterator<char>(file), {}};
      if (variables.find(name) != std::string::npos) pid = each;
    }
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(launched.says(fmt::format("rank {} came back", lost)));
    EXPECT_TRUE(goes_on());
  }
  launched.signal(SIGTERM);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  expect_bits_of_undisturbed_run("both");
}

TEST_F(ElasticGroups, ARankThatWaitsEndsWithTheRunOrBySignal) {
  const Processes ranks = start(4, 4, in_pairs());
  ASSERT_TRUE(kill_and_wait(ranks, 3, 0));
  ASSERT_TRUE(ranks[2]->says("once there are so many"));
  ranks[2]->signal(SIGTERM);
  EXPECT_EQ(ranks[2]->end().status, 75);
  EXPECT_TRUE(goes_on());
  ranks[0]->signal(SIGKILL);
  const Result result = ranks[1]->end();
  EXPECT_EQ(result.status, 5) << "less than a group";
  EXPECT_THAT(result.errors, HasSubstr("1 of 2 ranks are left, and a model is kept by 2 together"));
}

TEST_F(ElasticGroups, WithoutAWholeModelTheJobIsStartedAgain) {
  for (const auto& [faults, why] : std::vector<std::pair<const char*, const char*>>{
           {"1@0:relu:7:kill,2@0:relu:7:kill,3@0:relu:7:kill",
            "ranks are left, and a model is kept by 2"},
           {"1@0:relu:7:kill,3@0:relu:7:kill", "do not have every part of the state"}}) {
    const Result result = launch(faults, "--max-restarts 1 --restart-delay 0").end();
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(why));
    EXPECT_THAT(result.errors, HasSubstr("restart 1 of 1 in 0 s"));
    expect_undisturbed_weights(faults);
    forget_run();
  }
  const Result few =
      launch("3@0:relu:7:kill", "--min-ranks 3 --max-restarts 1 --restart-delay 0").end();
  EXPECT_EQ(few.status, 0) << few.errors;
  EXPECT_THAT(few.errors, HasSubstr("2 of 4 ranks are left, and parallel.elastic.min_ranks is 3"));
  expect_undisturbed_weights("fewer than may go on");
}

TEST_F(ElasticGroups, GroupsThatCannotBeAreRefused) {
  const Result three =
      run("launch --transport tcp --oversubscribe -np 3 --elastic run.txtpb --run-dir run " +
          std::string(kInPairs));
  EXPECT_EQ(three.status, 2) << three.errors;
  EXPECT_THAT(three.errors, HasSubstr("expected a divisor of the 3 ranks, got 2"));
  for (const char* size : {"0", "1"}) {
    const Result result =
        run(fmt::format("config check run.txtpb --set parallel.elastic.min_ranks=1 --set "
                        "parallel.strategy=HYBRID_SHARD --set parallel.shard_size={}",
                        size));
    EXPECT_EQ(result.status, 2) << size;
    EXPECT_THAT(result.errors, HasSubstr("expected at least 2 with HYBRID_SHARD")) << size;
  }
}

}  // namespace
}  // namespace lockstep::launcher
