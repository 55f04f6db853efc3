// Processes that take the state of a training job, which they join, while its ranks train.

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

constexpr const char* kTaking = "taking the state while the ranks train";

/// A model of some size, whose state is given in several steps.
class TakingState : public ElasticJob {
 protected:
  void SetUp() override { write_config("", "reproducibility: BITWISE"); }
  void write_config(const std::string& of_train, const std::string& more) const {
    put_file(
        folder_ / "run.txtpb",
        "model { mlp { inputs: 16 hidden_widths: [512, 512] classes: 4 activation: RELU } }\n" +
            train::table_data(folder_) + "train { steps: 20 batch_size: 8 micro_batch_size: 1 " +
            of_train + " }\n" + more);
  }
  /// The lines about processes that have joined.
  std::vector<nlohmann::json> joins() const {
    std::vector<nlohmann::json> found;
    for (nlohmann::json& line : lines_of("restarts.jsonl")) {
      if (line.contains("ranks_joined")) found.push_back(std::move(line));
    }
    return found;
  }
  void remove_runs() const {
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
};

TEST_F(TakingState, TheRanksSendNoneOfItWhileTheyStandStill) {
  for (const size_t before : {1, 2}) {
    const Processes ranks = start(static_cast<int>(before), 3);
    Launched last = train("--join");
    ASSERT_TRUE(ranks[0]->says("1 process takes the state while the ranks train"));
    ASSERT_TRUE(last.says(kTaking));
    ASSERT_TRUE(last.says("joined the run"));
    EXPECT_TRUE(goes_on());
    std::vector<Launched*> all = {&last};
    for (const auto& rank : ranks) all.insert(all.begin(), rank.get());
    stop_and_expect_end(all);
    ASSERT_EQ(joins().size(), 1);
    EXPECT_EQ(joins()[0]["state_sent"], 0);
    EXPECT_EQ(joins()[0]["steps_again"], 0);
    expect_bits_of_undisturbed_run(fmt::format("{} before", before));
    remove_runs();
  }
}

TEST_F(TakingState, SeveralProcessesMayTakeItAtOnce) {
  Launched second = train("--join");
  Launched third = train("--join");
  const Processes ranks = start(1, 3);
  ASSERT_TRUE(second.says("joined the run"));
  ASSERT_TRUE(third.says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), &second, &third});
  int joined = 0;
  for (const nlohmann::json& line : joins()) {
    joined += line["ranks_joined"].get<int>();
    EXPECT_EQ(line["state_sent"], 0);
  }
  EXPECT_EQ(joined, 2);
  expect_bits_of_undisturbed_run("three ranks");
}

TEST_F(TakingState, AProcessThatIsLostMeanwhileStopsNobody) {
  const Processes ranks = start(2, 3);
  for (int i = 0; i < 5; ++i) {
    Launched third = train("--join");
    ASSERT_TRUE(third.says(kTaking));
    third.signal(SIGKILL);
    EXPECT_EQ(third.end().status, 128 + SIGKILL);
    EXPECT_TRUE(goes_on());
  }
  Launched third = train("--join");
  ASSERT_TRUE(third.says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third});
  expect_bits_of_undisturbed_run("after five were lost");
}

TEST_F(TakingState, AProcessThatIsStoppedMeanwhileIsNotWaitedForByTheRanks) {
  const Processes ranks = start(2, 3);
  Launched third = train("--join");
  ASSERT_TRUE(third.says(kTaking));
  third.signal(SIGSTOP);
  EXPECT_TRUE(goes_on());
  third.signal(SIGCONT);
  ASSERT_TRUE(third.says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third});
  expect_bits_of_undisturbed_run("three ranks");
}

TEST_F(TakingState, ARankMayBeLostMeanwhile) {
  for (const size_t lost : {1, 0}) {
    for (int i = 0; i < 3; ++i) {
      const Processes ranks = start(2, 3);
      Launched third = train("--join");
      ASSERT_TRUE(third.says(kTaking));
      ranks[lost]->signal(SIGKILL);
      ASSERT_TRUE(third.says("joined the run")) << lost;
      EXPECT_TRUE(goes_on()) << lost;
      stop_and_expect_end({ranks[1 - lost].get(), &third});
      expect_bits_of_undisturbed_run(fmt::format("without rank {}", lost));
      remove_runs();
    }
  }
}

TEST_F(TakingState, SavesAndEvaluationsMayFallInThatTime) {
  write_config("eval_every: 3",
               "reproducibility: BITWISE checkpoint { every_steps: 2 asynchronous: true }");
  const std::string more = "--set schedule.decay_steps=100000 --steps ";
  const Processes ranks = start(2, 3, more + "100000000");
  Launched third = train("--join", 3, more + "100000000");
  ASSERT_TRUE(third.says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third});
  ASSERT_EQ(joins().size(), 1);
  EXPECT_EQ(joins()[0]["state_sent"], 0);
  const std::string rest =
      fmt::format("train run.txtpb {} {}{} --run-dir ", plugin(), more, steps());
  ASSERT_EQ(run(rest + "run --set parallel.elastic.max_ranks=3").status, 0);
  ASSERT_EQ(run(rest + "straight").status, 0);
  EXPECT_TRUE(file_content(folder_ / "run/model.safetensors") ==
              file_content(folder_ / "straight/model.safetensors"));
}

TEST_F(TakingState, TheRunMayEndMeanwhile) {
  const Processes ranks = start(2, 3);
  Launched third = train("--join");
  ASSERT_TRUE(third.says(kTaking));
  stop_and_expect_end({ranks[0].get(), ranks[1].get(), &third});
  expect_bits_of_undisturbed_run("two ranks");
}

TEST_F(TakingState, IsGivenWhileTheRanksStandStillWhereGradientsAreNotKept) {
  write_config("", "optimizer { optimizer_in_backward: true clip_grad_norm: 0 }");
  const Processes ranks = start(1, 2);
  Launched second = train("--join", 2);
  ASSERT_TRUE(second.says("joined the run"));
  EXPECT_TRUE(goes_on());
  stop_and_expect_end({ranks[0].get(), &second});
  ASSERT_EQ(joins().size(), 1);
  EXPECT_GT(joins()[0]["state_sent"], 3 * 4 * 512 * 512);
}

}  // namespace
}  // namespace lockstep::launcher
