// Training jobs whose ranks go on by themselves when others are lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launcher/launch/disturbed_run.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

class Elastic : public DisturbedRun {
 protected:
  Launched start(const std::string& faults, const std::string& options = "",
                 const std::string& more = "") const {
    return DisturbedRun::start(faults, "--elastic " + options, more);
  }
  /// Of the job; 0 while there is none.
  static pid_t process_of_rank(const Launched& launched, int rank) {
    const std::string name = fmt::format("OMPI_COMM_WORLD_RANK={}", rank);
    for (const pid_t pid : descendants(launched.pid())) {
      if (says(file_content(fmt::format("/proc/{}/environ", pid)), name)) return pid;
    }
    return 0;
  }
  /// Waits until rank 3 has stopped itself, so that rank 2 is not lost while it still goes on.
  /// Returns rank 3's process; 0 if it did not stop.
  static pid_t kill_2_once_3_is_stopped(const Launched& launched) {
    pid_t stopped = 0;
    const bool is_stopped = comes_true([&] {
      stopped = process_of_rank(launched, 3);
      return stopped > 0 &&
             says(file_content(fmt::format("/proc/{}/status", stopped)), "T (stopped)");
    });
    if (!is_stopped) return 0;
    ::kill(process_of_rank(launched, 2), SIGKILL);
    return stopped;
  }
  std::vector<nlohmann::json> lines_of(const char* name) const {
    std::istringstream text(file_content(folder_ / "run" / name));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  /// Every step has one line, with the loss and the evaluation of the undisturbed run.
  void expect_undisturbed_metrics(const std::string& what) const {
    std::vector<int64_t> steps;
    for (const nlohmann::json& line : lines_of("metrics.jsonl")) {
      if (line.contains("step")) steps.push_back(line["step"]);
    }
    std::vector<int64_t> all(20);
    std::iota(all.begin(), all.end(), 1);
    EXPECT_EQ(steps, all) << what;
    const Result compared = run("compare run undisturbed");
    EXPECT_EQ(compared.status, 0) << what << "\n" << compared.output;
  }
};

TEST_F(Elastic, RanksThatAreLeftComeToTheBitsOfAnUndisturbedRun) {
  struct Row {
    const char* when;
    const char* faults;
    int losses;
    const char* told;
  };
  const std::vector<Row> rows = {
      {"a follower, in the third step", "3:relu:5:kill", 1, "going on with 3 ranks from step 2"},
      {"the leader", "0:relu:5:kill", 1, "rank 0 on host"},
      {"the leader, by a crash in backward", "0:threshold_backward:7:segv", 1, "with 3 ranks"},
      {"two at once", "1:relu:5:kill,2:relu:5:kill", -1, ""},
      {"the leader and another at once", "0:relu:7:kill,2:relu:7:kill", -1, ""},
      {"all but the leader", "1:relu:7:kill,2:relu:7:kill,3:relu:7:kill", -1, "with 1 rank from"},
      {"all but one", "0:relu:7:kill,1:relu:7:kill,2:relu:7:kill", -1, "with 1 rank from"},
      {"the leader, in the evaluation after step 5", "0:relu:11:kill", 1, "from step 5"},
      {"a follower in the evaluation after step 5", "1:relu:11:kill", 1, "from step 5"},
      {"the leader, once all gradients are there", "0:_block_square_sums:8:kill", 1, "from step 7"},
      {"by an exception", "2:relu:3:throw", 1, "rank 2 on host"},
      {"one after the other", "3:relu:5:kill,1:_block_square_sums:9:kill", 2, "with 2 ranks from"},
      {"both leaders, one after the other", "0:relu:5:kill,1:_block_square_sums:9:kill", 2,
       "with 2 ranks from"},
  };
  for (const Row& row : rows) {
    const Result result = start(row.faults).end();
    EXPECT_EQ(result.status, 0) << row.when << "\n" << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(row.told)) << row.when;
    EXPECT_THAT(result.errors, HasSubstr("; the others go on")) << row.when;
    EXPECT_THAT(result.errors, Not(HasSubstr("restart"))) << row.when;
    expect_undisturbed_weights(row.when);
    expect_undisturbed_metrics(row.when);
    const std::vector<nlohmann::json> losses = lines_of("restarts.jsonl");
    ASSERT_FALSE(losses.empty()) << row.when;
    if (row.losses > 0) {
      EXPECT_EQ(losses.size(), row.losses) << row.when;
    }
    for (const nlohmann::json& loss : losses) {
      EXPECT_EQ(loss["restart"], 0) << row.when;
      EXPECT_LT(loss["ranks_left"], loss["ranks"]) << row.when;
      EXPECT_EQ(loss["steps_again"], 0) << row.when;
    }
    EXPECT_TRUE(losses.back()["training_again_s"].is_number()) << row.when << losses.back();
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(Elastic, TheLeadersWorkGoesOnUnderAnotherOne) {
  for (const char* more : {"--set checkpoint.keep_best=true --set train.early_stopping.patience=3",
                           "--set checkpoint.files=SHARDS", "--set checkpoint.asynchronous=true",
                           "--set train.weight_average.decay=0.9"}) {
    ASSERT_EQ(run(fmt::format("train run.txtpb --run-dir straight {} {}", plugin(), more)).status,
              0);
    const Result result = start("0:_block_square_sums:8:kill", "", more).end();
    EXPECT_EQ(result.status, 0) << more << "\n" << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("rank 0 on host")) << more;
    EXPECT_TRUE(file_content(folder_ / "run/model.safetensors") ==
                file_content(folder_ / "straight/model.safetensors"))
        << more;
    const auto best = [&](const char* name) {
      std::error_code none;
      return std::filesystem::read_symlink(folder_ / name / "checkpoints/best", none);
    };
    EXPECT_EQ(best("run"), best("straight")) << more;
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoints/step-00000020")) << more;
    EXPECT_EQ(run("compare run straight").status, 0) << more;
    const auto account = nlohmann::json::parse(file_content(folder_ / "run/goodput.json"));
    EXPECT_EQ(account["restarts"], 1) << more;
    EXPECT_EQ(account["ended"], "finished") << more;
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
}

TEST_F(Elastic, FewerRanksThanMayGoOnSaveAndAreStartedAgain) {
  const Result result =
      start("2@0:relu:5:kill", "--min-ranks 4 --max-restarts 1 --restart-delay 0").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("3 of 4 ranks are left, and parallel.elastic.min_ranks is 4"));
  EXPECT_THAT(result.errors, HasSubstr("saved the state after step 2"));
  EXPECT_THAT(result.errors, HasSubstr("restart 1 of 1 in 0 s; it goes on from step 2"));
  expect_undisturbed_weights("restarted");
}

TEST_F(Elastic, RanksThatCannotShareAStepSaveAndAreStartedAgain) {
  // A quarter of a step each, which three ranks cannot divide.
  const std::string share =
      "--set reproducibility=ORDINARY --set train.batch_size=4 --set train.leaves=2";
  const Result result = start("2@0:relu:3:kill", "--max-restarts 1 --restart-delay 0", share).end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("3 ranks cannot share the steps of 4"));
  EXPECT_THAT(result.errors, HasSubstr("restart 1 of 1 in 0 s; it goes on from step 2"));
}

TEST_F(Elastic, ARankThatWasStoppedEndsByItselfWhenTheOthersWentOnWithoutIt) {
  Launched launched = start("3:relu:5:stop", "",
                            "--steps 100000000 --set checkpoint.every_steps=0 --set "
                            "train.eval_every=0 --set parallel.elastic.wait_seconds=0.5");
  const pid_t stopped = kill_2_once_3_is_stopped(launched);
  ASSERT_GT(stopped, 0);
  ASSERT_TRUE(launched.says("ranks 2, 3 on host"));
  ::kill(stopped, SIGCONT);
  EXPECT_TRUE(comes_true([&] { return !runs(stopped); }));
  EXPECT_TRUE(launched.says("the others go on"));
  // The run goes on, and has no checkpoint that nobody asked for.
  const size_t steps = lines_of("metrics.jsonl").size();
  EXPECT_TRUE(comes_true([&] { return lines_of("metrics.jsonl").size() > steps; }));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/checkpoints"));
  launched.signal(SIGINT);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("do not go on by themselves"));
}

TEST_F(Elastic, ARankThatStaysStoppedDoesNotOutliveTheJob) {
  Launched launched = start("3:relu:5:stop", "", "--set parallel.elastic.wait_seconds=0.5");
  ASSERT_GT(kill_2_once_3_is_stopped(launched), 0);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("going on with 2 ranks from step 2"));
  expect_undisturbed_weights("two ranks");
}

TEST_F(Elastic, AStopReachesTheRanksThatAreLeft) {
  Launched launched = start("0:relu:5:kill", "",
                            "--steps 100000000 --set checkpoint.every_steps=0 --set "
                            "train.eval_every=0");
  ASSERT_TRUE(launched.says("going on with 3 ranks"));
  launched.signal(SIGINT);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("everything is saved"));
  const int64_t steps = lines_of("metrics.jsonl").back()["step"];
  EXPECT_TRUE(std::filesystem::exists(folder_ / fmt::format("run/checkpoints/step-{:08}", steps)));
}

TEST_F(Elastic, LossesBeforeTrainingAreThoseOfAnyJob) {
  const Result result = start("2@0:load:1:kill", "--max-restarts 1 --restart-delay 0").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("restart 1 of 1 in 0 s"));
  expect_undisturbed_weights("restarted");
}

TEST_F(Elastic, IsRefusedWhereRanksCannotGoOn) {
  const Result mpi = run("launch --allow-run-as-root -np 2 --elastic run.txtpb");
  EXPECT_EQ(mpi.status, 2);
  EXPECT_THAT(mpi.errors, HasSubstr("--elastic"));
  EXPECT_THAT(mpi.errors, HasSubstr("--transport tcp"));
  const Result program = run("launch --transport tcp -np 2 --elastic true");
  EXPECT_EQ(program.status, 2);
  EXPECT_THAT(program.errors, HasSubstr("--elastic is of training"));
  for (const auto& [more, why] : std::vector<std::pair<std::string, std::string>>{
           {"--set parallel.strategy=FULL_SHARD", "parallel.elastic does not go with a parallel"},
           {"--set device=host:0", "parallel.elastic does not go with device"},
           {"--set reproducibility=ORDINARY --set parallel.local_sgd.bits=8",
            "parallel.elastic does not go with parallel.local_sgd"}}) {
    const Result result = run("config check run.txtpb --set parallel.elastic.min_ranks=1 " + more);
    EXPECT_EQ(result.status, 2) << more;
    EXPECT_THAT(result.errors, HasSubstr(why)) << more;
  }
}

}  // namespace
}  // namespace lockstep::launcher
