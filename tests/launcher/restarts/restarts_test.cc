// Training jobs that launch starts again after a failure.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launcher/launch/disturbed_run.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class Restarts : public DisturbedRun {
 protected:
  void TearDown() override {
    EXPECT_TRUE(comes_true([&] { return processes_here().empty(); })) << "a process is left";
  }

  std::vector<std::string> failures() const {
    std::istringstream text(file_content(folder_ / "run/restarts.jsonl"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  /// Processes that work in the test's folder.
  std::vector<pid_t> processes_here() const {
    std::vector<pid_t> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", ignored);
      if (folder == folder_.path()) found.push_back(pid);
    }
    return found;
  }
};

TEST_F(Restarts, EndWithTheBitsOfAnUndisturbedRunWhereverARankIsLost) {
  struct Row {
    const char* when;
    const char* faults;
    int step_lost;
    int resumed_from;
  };
  const std::vector<Row> rows = {
      {"before the ranks meet", "2@0:load:1:kill", 0, 0},
      {"before the first step", "3@0:relu:1:kill", 0, 0},
      {"the leader, before a checkpoint", "0@0:relu:5:kill", 2, 2},
      {"the leader, after one", "0@0:threshold_backward:13:kill", 6, 6},
      {"the leader, by a crash", "0@0:threshold_backward:5:segv", 2, 2},
      {"the leader and another at once", "0@0:relu:7:kill,2@0:relu:7:kill", 3, 3},
      {"all but one", "0@0:relu:7:kill,1@0:relu:7:kill,2@0:relu:7:kill", 3, 3},
      {"the leader, in the evaluation after step 5", "0@0:relu:11:kill", 4, 0},
      {"in the third step", "3@0:relu:5:kill", 2, 2},
      {"in the fourth step's backward, by a crash", "1@0:threshold_backward:7:segv", 3, 3},
      {"in the evaluation after step 5", "1@0:relu:11:kill", 4, 0},
      {"in the seventh step, after a checkpoint", "1@0:threshold_backward:13:kill", 6, 6},
      {"two at once", "1@0:relu:5:kill,2@0:relu:5:kill", 2, 2},
      {"by an exception", "2@0:relu:3:throw", 1, 1},
      {"in the recovery, too", "1@0:relu:3:kill,2@1:load:1:kill,0@2:relu:1:kill", 1, 1},
  };
  for (const Row& row : rows) {
    const Result result = start(row.faults, "--max-restarts 3 --restart-delay 0").end();
    EXPECT_EQ(result.status, 0) << row.when << "\n" << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("restart 1 of 3 in 0 s; it goes on from step "))
        << row.when;
    expect_undisturbed_weights(row.when);
    const std::vector<std::string> lines = failures();
    ASSERT_FALSE(lines.empty()) << row.when;
    EXPECT_THAT(lines[0], HasSubstr(fmt::format("\"ranks\":4,\"step_lost\":{},\"resumed_from\":{},"
                                                "\"steps_again\":{},\"restart\":1,",
                                                row.step_lost, row.resumed_from,
                                                row.step_lost - row.resumed_from)))
        << row.when;
    EXPECT_THAT(lines.back(), Not(HasSubstr("\"training_again_s\":null"))) << row.when;
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(Restarts, KeepWhatTheLeaderKnewOfTheRun) {
  // The lowest held-out loss is that of a step before the loss of the leader.
  for (const char* more : {"--set checkpoint.keep_best=true --set train.early_stopping.patience=3",
                           "--set checkpoint.files=SHARDS", "--set checkpoint.asynchronous=true",
                           "--set checkpoint.asynchronous=true --set checkpoint.files=SHARDS",
                           "--set train.weight_average.decay=0.9"}) {
    const std::string options = std::string(more) + " --set checkpoint.every_steps=100";
    ASSERT_EQ(
        run(fmt::format("train run.txtpb --run-dir straight {} {}", plugin(), options)).status, 0);
    // In the eighth step; the evaluation after the fifth has computed one batch or more.
    const Result result =
        start("0@0:_block_square_sums:8:kill", "--max-restarts 1 --restart-delay 0", options).end();
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("saved the state after step 7 in place of rank 0"));
    ASSERT_EQ(failures().size(), 1U);
    EXPECT_THAT(failures()[0], HasSubstr("\"resumed_from\":7,\"steps_again\":0")) << more;
    EXPECT_THAT(failures()[0], HasSubstr("\"cause\":\"rank 0 was ended by signal 9")) << more;
    EXPECT_TRUE(file_content(folder_ / "run/model.safetensors") ==
                file_content(folder_ / "straight/model.safetensors"))
        << more;
    const auto best = [&](const char* name) {
      std::error_code none;
      return std::filesystem::read_symlink(folder_ / name / "checkpoints/best", none);
    };
    EXPECT_EQ(best("run"), best("straight")) << more;
    EXPECT_EQ(run("compare run straight").status, 0) << more;
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "straight");
  }
}

TEST_F(Restarts, GoOnFromTheMemoryOfTheOthersWhereTheStateIsSpread) {
  struct Row {
    const char* strategy;
    const char* faults;
    const char* cause;
    bool in_place;  // of rank 0
  };
  const std::vector<Row> rows = {
      {"FULL_SHARD", "2@0:relu:15:kill", "was ended by signal 9", false},
      {"FULL_SHARD", "0@0:relu:15:kill", "was ended by signal 9", true},
      {"FULL_SHARD", "0@0:relu:15:kill,2@0:relu:15:kill", "was ended by signal 9", true},
      {"FULL_SHARD", "0@0:relu:15:throw", "ended with exit status 1", false},
      {"FULL_SHARD", "3@0:threshold_backward:15:throw", "ended with exit status 1", false},
      {"SHARD_OPTIMIZER", "0@0:_block_square_sums:8:kill", "was ended by signal 9", true},
      {"HYBRID_SHARD", "1@0:relu:15:kill", "was ended by signal 9", false},
  };
  for (const Row& row : rows) {
    const std::string what = fmt::format("{} {}", row.strategy, row.faults);
    const Result result =
        start(row.faults, "--max-restarts 1 --restart-delay 0",
              fmt::format(
                  "--set parallel.strategy={} {} --set checkpoint.memory_every=3 --set "
                  "checkpoint.every_steps=0 --set train.eval_every=0",
                  row.strategy,
                  std::string(row.strategy) == "HYBRID_SHARD" ? "--set parallel.shard_size=2" : ""))
            .end();
    EXPECT_EQ(result.status, 0) << what << "\n" << result.errors;
    EXPECT_THAT(result.errors,
                HasSubstr(row.in_place ? " from memory in place of rank 0, from which"
                                       : " from memory, from which"))
        << what << result.errors;
    expect_undisturbed_weights(what);
    ASSERT_EQ(failures().size(), 1U) << what;
    EXPECT_THAT(failures()[0], HasSubstr(row.cause)) << what;
    // Copies of step 6 may still have been on their way in the eighth step.
    EXPECT_THAT(failures()[0], testing::AnyOf(HasSubstr("\"step_lost\":7,\"resumed_from\":6,"),
                                              HasSubstr("\"step_lost\":7,\"resumed_from\":3,")))
        << what;
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(Restarts, DoNotWaitForACheckpointThatAnEarlierProcessHasLeft) {
  std::filesystem::create_directories(folder_ / "run/checkpoints/.partial-step-00000005");
  const Result result = start("2@0:load:1:kill", "--max-restarts 1 --restart-delay 0").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  expect_undisturbed_weights("after a loss at the start");
}

TEST_F(Restarts, TellTheRanksThatWereLostAtOnce) {
  const Result result =
      start("1@0:relu:5:kill,2@0:relu:5:kill", "--max-restarts 1 --restart-delay 0").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  ASSERT_EQ(failures().size(), 1U);
  EXPECT_THAT(failures()[0], HasSubstr("\"cause\":\"rank "));
  EXPECT_THAT(failures()[0], HasSubstr("was ended by signal 9 (Killed)"));
  EXPECT_THAT(failures()[0], HasSubstr("\"status\":137"));
}

TEST_F(Restarts, GoOnWithoutARankThatIsTooSlow) {
  const std::string slow = "--set parallel.leave_out_slower=1.5";
  const Result result =
      start("3:relu:1:slow:200", "--max-restarts 1 --min-ranks 2 --restart-delay 0", slow).end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("SlowRankError: [train] rank 3 on "));
  EXPECT_THAT(result.errors, HasSubstr("Everything is saved: go on without that host."));
  EXPECT_THAT(result.errors, HasSubstr("on 3 ranks: rank 3 is too slow"));
  EXPECT_THAT(result.errors, HasSubstr(", with 0 steps to do again"));
  expect_undisturbed_weights("too slow");
  ASSERT_EQ(failures().size(), 1U);
  EXPECT_THAT(failures()[0], HasSubstr("\"cause\":\"rank 3 on "));
  EXPECT_THAT(failures()[0], HasSubstr("\"status\":8"));
}

TEST_F(Restarts, KeepASlowRankWhereThereWouldBeTooFewWithoutIt) {
  const std::string slow = "--set parallel.leave_out_slower=1.5";
  const Result result =
      start("3:relu:1:slow:200", "--max-restarts 1 --min-ranks 4 --restart-delay 0", slow).end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 3 is too slow, but without it"));
  EXPECT_EQ(failures().size(), 1U);
  expect_undisturbed_weights("kept");
}

TEST_F(Restarts, GoOnWhereASaveInEveryStartKillsTheLeader) {
#ifndef LOCKSTEP_FILE_FAULTS
  GTEST_SKIP() << "this build has no libfile_faults.so";
#else
  const auto calls_of_steps = [&](int steps) {
    const Result result =
        run(fmt::format("train run.txtpb --run-dir counted --steps {}", steps),
            fmt::format("LD_PRELOAD='{}' FILE_FAULTS_FOLDER='{}' FILE_FAULTS_COUNT='{}'",
                        LOCKSTEP_FILE_FAULTS, (folder_ / "counted/checkpoints").string(),
                        (folder_ / "calls").string()));
    EXPECT_EQ(result.status, 0) << result.errors;
    const std::string calls = file_content(folder_ / "calls");
    std::filesystem::remove_all(folder_ / "counted");
    std::filesystem::remove(folder_ / "calls");
    return std::ranges::count(calls, '\n');
  };
  const auto one = calls_of_steps(5);
  const auto two = calls_of_steps(10);
  ASSERT_GT(one, 0);
  ASSERT_GT(two, one);
  // Each start writes one checkpoint and is killed in its second one: progress, so that a budget of
  // one is enough.
  const std::string faults = fmt::format(
      "-x LD_PRELOAD='{}' -x FILE_FAULTS_FOLDER='{}' -x FILE_FAULTS_AT={} -x "
      "FILE_FAULTS_ACTION=kill",
      LOCKSTEP_FILE_FAULTS, (folder_ / "run/checkpoints").string(), (one + two) / 2);
  const Result result =
      start("9:relu:1:kill", "--max-restarts 1 --restart-delay 0 " + faults).end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_GE(failures().size(), 2U) << result.errors;
  expect_undisturbed_weights("in a save");
#endif
}

TEST_F(Restarts, TellTheStatusOfTheLastFailureOnceTheBudgetIsSpent) {
  const Result result = start("1:relu:3:kill", "--max-restarts 2 --restart-delay 0").end();
  EXPECT_EQ(result.status, 137) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("no restart: 2 without progress are allowed"));
  const std::vector<std::string> lines = failures();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("\"restart\":1,"));
  EXPECT_THAT(lines[1], HasSubstr("\"restart\":2,"));
  EXPECT_THAT(lines[2], Not(HasSubstr("restart\"")));
}

TEST_F(Restarts, AreNotForErrorsThatWouldComeAgain) {
  const std::string options = "--max-restarts 3 --restart-delay 0";
  // What only the ranks find: 4 ranks cannot share 2 samples.
  const Result config =
      start("9:relu:1:kill", options, "--set train.batch_size=2 --set train.leaves=2").end();
  EXPECT_EQ(config.status, 2) << config.errors;
  EXPECT_THAT(config.errors, Not(HasSubstr("lockstep launch: restart")));
  std::filesystem::remove(folder_ / "table.csv");
  const Result data = start("9:relu:1:kill", options).end();
  EXPECT_EQ(data.status, 3) << data.errors;
  EXPECT_THAT(data.errors, Not(HasSubstr("lockstep launch: restart")));
}

TEST_F(Restarts, DoNotFollowARequestToStop) {
  Launched launched = start("9:relu:1:kill", "--max-restarts 3 --restart-delay 0",
                            "--steps 100000000 --set checkpoint.every_steps=0");
  ASSERT_TRUE(comes_true([&] { return !file_content(folder_ / "run/metrics.jsonl").empty(); }));
  launched.signal(SIGINT);
  const Result result = launched.end();
  EXPECT_EQ(result.status, 75) << result.errors;
  EXPECT_THAT(result.errors, Not(HasSubstr("lockstep launch: restart")));
}

TEST_F(Restarts, AreGivenUpAtOnceByASignalInTheDelay) {
  const auto begin = std::chrono::steady_clock::now();
  Launched launched = start("1:relu:3:kill", "--max-restarts 3 --restart-delay 1000");
  EXPECT_TRUE(launched.says("restart 1 of 3 in 60 s"));
  launched.signal(SIGINT);
  EXPECT_EQ(launched.end().status, 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 50s);
  EXPECT_EQ(failures().size(), 1U);
}

TEST_F(Restarts, LeaveOutARankThatFailsAgainAndAgainIfFewerMayDo) {
  const Result result =
      start("3:relu:3:kill", "--max-restarts 5 --min-ranks 2 --restart-delay 0").end();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("restart 2 of 5 in 0 s, on 3 ranks: rank 3 failed 2 times in a row"));
  expect_undisturbed_weights("on three ranks");
  EXPECT_EQ(failures().size(), 2U);
}

TEST_F(Restarts, CountInTheGoodputOfTheRunOverAllItsStarts) {
  // The state is spread over the ranks, so that a step is done again.
  const Result result =
      start("0@0:threshold_backward:13:kill", "--max-restarts 1 --restart-delay 0.3",
            "--set parallel.strategy=FULL_SHARD")
          .end();
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("goodput "));
  EXPECT_THAT(result.output, HasSubstr("restart "));
  const auto account = [&] {
    return nlohmann::json::parse(file_content(folder_ / "run/goodput.json"));
  };
  std::vector<nlohmann::json> ends = {account()};
  // Goes on later; the time in between is nobody's.
  ASSERT_EQ(run("train run.txtpb --run-dir run --steps 25 " + plugin()).status, 0);
  ends.push_back(account());
  const std::string line = file_content(folder_ / "run/metrics.jsonl");
  const auto first = nlohmann::json::parse(line.substr(0, line.find('\n')));
  EXPECT_EQ(first.at("starts"), 1);
  EXPECT_EQ(ends[0].at("ended"), "finished");
  EXPECT_GE(ends[0].at("restart_s"), 0.3);
  EXPECT_GT(ends[0].at("redone_s"), 0);
  EXPECT_EQ(ends[1].at("steps"), 25);
  EXPECT_EQ(ends[1].at("starts"), 3);
  EXPECT_EQ(ends[1].at("restarts"), 1);
  for (const auto& end : ends) {
    double sum = 0;
    for (const char* each : {"train_s", "data_s", "evaluation_s", "checkpoint_s", "redone_s",
                             "start_s", "restart_s", "other_s"}) {
      const double seconds = end.at(each);
      EXPECT_GE(seconds, 0) << each;
      sum += seconds;
    }
    EXPECT_NEAR(sum, end.at("wall_s"), 1e-3 * end.at("wall_s").get<double>());
    EXPECT_GT(end.at("train_s"), 0);
  }
  // By the clock on the wall: lines say in milliseconds when they were written.
  const auto between = [&](const char* name) {
    return ends[0].at(name).get<double>() - first.at(name).get<double>();
  };
  EXPECT_NEAR(between("wall_s"), between("at"), 1e-3 * between("at") + 0.002);
}

TEST_F(Restarts, ByMpirunEndWithTheSameBits) {
  if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
  const Result result =
      Launched(
          fmt::format("--transport mpi --oversubscribe -np 4 --max-restarts 2 --restart-delay "
                      "0 -x RANK_FAULT=1@0:threshold_backward:13:kill run.txtpb --run-dir run {}",
                      plugin()),
          folder_.path())
          .end();
  EXPECT_EQ(result.status, 0) << result.errors;
  expect_undisturbed_weights("by mpirun");
  ASSERT_EQ(failures().size(), 1U);
  EXPECT_THAT(failures()[0], HasSubstr("\"rank\":1,\"host\":"));
}

}  // namespace
}  // namespace lockstep::launcher
