// Processes that take the state of a training job whose ranks keep a model in groups
// (HYBRID_SHARD), while these train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/launcher/elastic/elastic_job.h"

namespace lockstep::launcher {
namespace {

constexpr const char* kTakingParts = "taking the state while the ranks train";

/// A model of some size, whose state is given in several steps, kept by pairs of ranks.
class TakingParts : public ElasticJob {
 protected:
  void SetUp() override { write_config("reproducibility: BITWISE"); }
  void write_config(const std::string& more) const {
    put_file(
        folder_ / "run.txtpb",
        "model { mlp { inputs: 16 hidden_widths: [512, 512] classes: 4 activation: RELU } }\n" +
            train::table_data(folder_) + "train { steps: 20 batch_size: 8 micro_batch_size: 1 }\n" +
            more);
  }
  static std::string in_pairs() {
    return "--set parallel.strategy=HYBRID_SHARD --set parallel.shard_size=2 " + endless();
  }
  std::unique_ptr<Launched> newcomer(int most, const std::string& variables = "") const {
    return std::unique_ptr<Launched>(new Launched(train("--join", most, in_pairs(), variables)));
  }
  /// The lines about processes that have joined.
  std::vector<nlohmann::json> joins() const {
    std::vector<nlohmann::json> found;
    for (nlohmann::json& line : lines_of("restarts.jsonl")) {
      if (line.contains("ranks_joined")) found.push_back(std::move(line));
    }
    return found;
  }
  void expect_joined_without_sending(int count) const {
    int joined = 0;
    for (const nlohmann::json& line : joins()) {
      joined += line["ranks_joined"].get<int>();
      EXPECT_EQ(line["state_sent"], 0);
      EXPECT_EQ(line["steps_again"], 0);
    }
    EXPECT_EQ(joined, count);
  }
  void remove_runs() const {
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
};

TEST_F(TakingParts, TheRanksSendNoneOfThemWhileTheyStandStill) {
  const Processes ranks = start(2, 4, in_pairs());
  const auto third = newcomer(4), fourth = newcomer(4);
  ASSERT_TRUE(ranks[0]->says("2 processes take the state while the ranks train"));
  for (Launched* each : {third.get(), fourth.get()}) {
    ASSERT_TRUE(each->says(kTakingParts));
    ASSERT_TRUE(each->says("joined the run"));
  }
  EXPECT_TRUE(goes_on());
  // What they have taken is the whole state.
  ranks[0]->signal(SIGKILL);
  ranks[1]->signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return lines_of("restarts.jsonl").size() >= 2; }));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({third.get(), fourth.get()});
  expect_joined_without_sending(2);
  expect_bits_of_undisturbed_run("the second group");
}

TEST_F(TakingParts, SeveralGroupsMayTakeThemAtOnce) {
  std::vector<std::unique_ptr<Launched>> newcomers;
  for (int i = 0; i < 4; ++i) newcomers.push_back(newcomer(6));
  const Processes ranks = start(2, 6, in_pairs());
  std::vector<Launched*> all = {ranks[0].get(), ranks[1].get()};
  for (const auto& each : newcomers) {
    ASSERT_TRUE(each->says("joined the run"));
    all.push_back(each.get());
  }
  EXPECT_TRUE(goes_on());
  stop_and_expect_end(all);
  expect_joined_without_sending(4);
  expect_bits_of_undisturbed_run("three groups");
}

TEST_F(TakingParts, ARankThatWaitsTakesAPartAnew) {
  for (const size_t lost : {3, 1, 0}) {
    const Processes ranks = start(4, 4, in_pairs());
    ranks[lost]->signal(SIGKILL);
    const size_t spare = lost == 0 ? 1 : 2;
    ASSERT_TRUE(ranks[spare]->says("once there are so many")) << lost;
    const auto fifth = newcomer(4);
    ASSERT_TRUE(fifth->says("joined the run")) << lost;
    ASSERT_TRUE(ranks[spare]->says(kTakingParts)) << lost;
    ASSERT_TRUE(ranks[spare]->says("joined the run")) << lost;
    EXPECT_TRUE(goes_on()) << lost;
    std::vector<Launched*> all = {fifth.get()};
    for (size_t rank = 0; rank < 4; ++rank) {
      if (rank != lost) all.push_back(ranks[rank].get());
    }
    stop_and_expect_end(all);
    expect_joined_without_sending(2);
    expect_bits_of_undisturbed_run(fmt::format("without rank {}", lost));
    remove_runs();
  }
}

TEST_F(TakingParts, AProcessThatIsLostMeanwhileStopsNobody) {
  const Processes ranks = start(2, 4, in_pairs());
  const auto third = newcomer(4);
  for (int i = 0; i < 3; ++i) {
    const auto lost = newcomer(4);
    ASSERT_TRUE(lost->says(kTakingParts));
    lost->signal(SIGKILL);
    EXPECT_EQ(lost->end().status, 128 + SIGKILL);
    EXPECT_TRUE(goes_on());
  }
  const auto fourth = newcomer(4);
  ASSERT_TRUE(third->says("joined the run"));
  ASSERT_TRUE(fourth->says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), third.get(), fourth.get()});
  expect_joined_without_sending(2);
  expect_bits_of_undisturbed_run("after three were lost");
}

TEST_F(TakingParts, AProcessThatIsStoppedMeanwhileIsNotWaitedForByTheRanks) {
  const Processes ranks = start(2, 4, in_pairs());
  const auto third = newcomer(4), fourth = newcomer(4);
  ASSERT_TRUE(fourth->says(kTakingParts));
  fourth->signal(SIGSTOP);
  EXPECT_TRUE(goes_on());
  fourth->signal(SIGCONT);
  ASSERT_TRUE(third->says("joined the run"));
  ASSERT_TRUE(fourth->says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), third.get(), fourth.get()});
  expect_bits_of_undisturbed_run("four ranks");
}

TEST_F(TakingParts, ARankMayBeLostMeanwhile) {
  for (const size_t lost : {0, 1, 3}) {
    const Processes ranks = start(4, 6, in_pairs());
    const auto fifth = newcomer(6), sixth = newcomer(6);
    ASSERT_TRUE(fifth->says(kTakingParts)) << lost;
    ranks[lost]->signal(SIGKILL);
    // Three wait, and another one comes.
    const auto seventh = newcomer(6);
    std::vector<Launched*> all = {fifth.get(), sixth.get(), seventh.get()};
    for (Launched* each : all) EXPECT_TRUE(each->says("joined the run")) << lost;
    for (size_t rank = 0; rank < 4; ++rank) {
      if (rank != lost) all.push_back(ranks[rank].get());
    }
    EXPECT_TRUE(all[lost == 0 ? 3 : lost == 1 ? 4 : 5]->says("joined the run")) << lost;
    EXPECT_TRUE(goes_on()) << lost;
    stop_and_expect_end(all);
    expect_bits_of_undisturbed_run(fmt::format("without rank {}", lost));
    remove_runs();
  }
}

TEST_F(TakingParts, TheLeaderMayBeLostAsTheRanksMeetTheProcesses) {
  for (int i = 0; i < 3; ++i) {
    const Processes ranks = start(4, 6, in_pairs());
    const auto fifth = newcomer(6), sixth = newcomer(6);
    ASSERT_TRUE(fifth->says("joined the run"));
    ranks[0]->signal(SIGKILL);  // most likely before it has told the others that it leads again
    EXPECT_TRUE(ranks[2]->says("rank 0 on host"));
    EXPECT_TRUE(ranks[1]->says("joining at the end of a step"));  // it has found who leads now
    EXPECT_TRUE(goes_on());
    stop_and_expect_end({ranks[2].get(), ranks[3].get(), ranks[1].get()});
    expect_bits_of_undisturbed_run("without the first leader");
    remove_runs();
  }
}

TEST_F(TakingParts, TheRunMayEndMeanwhile) {
  const Processes ranks = start(2, 4, in_pairs());
  const auto third = newcomer(4), fourth = newcomer(4);
  ASSERT_TRUE(fourth->says(kTakingParts));
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), third.get(), fourth.get()});
  expect_bits_of_undisturbed_run("two ranks");
}

}  // namespace
}  // namespace lockstep::launcher
