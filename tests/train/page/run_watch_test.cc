#include "train/page/run_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "train/report/run_directory.h"
#include "train/report/run_lock.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunWatchTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories(run_);
    put_file(run_ / name, content);
  }
  void append(std::string_view content) const {
    std::ofstream(run_ / "metrics.jsonl", std::ios::binary | std::ios::app) << content;
  }
  std::string look() {
    watch_.look();
    return watch_.text({});
  }

  TemporaryDirectory folder_;
  std::filesystem::path run_ = folder_ / "run";
  RunWatch watch_{run_};
};

TEST_F(RunWatchTest, WaitsForARunThatIsNotThereYet) {
  EXPECT_THAT(look(), HasSubstr("waiting for a run in "));
  EXPECT_FALSE(watch_.finished());
  put("config.txtpb", "train {\n  steps: 10\n}\n");
  put("metrics.jsonl", "{\"step\":1,\"loss\":3,\"step_ms\":100}\n");
  EXPECT_THAT(look(), HasSubstr("step 1/10 (10.0 %)"));
}

TEST_F(RunWatchTest, TakesLinesOnceTheyAreWhole) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n{\"step\":2,\"lo");
  EXPECT_THAT(look(), HasSubstr("step 1,"));
  append("ss\":1.5}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("step 2,"));
  EXPECT_THAT(text, HasSubstr("from 1.5 nats to 3 nats"));
}

TEST_F(RunWatchTest, ARestartThatCutsTheMetricsIsFollowed) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":9}\n{\"step\":3,\"loss\":9}\n");
  look();
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  EXPECT_THAT(look(), HasSubstr("step 1,"));
  // Cut and longer than before since the last look.
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  look();
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":5}\n{\"step\":3,\"loss\":6}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("step 3,"));
  EXPECT_THAT(text, HasSubstr("from 4 nats to 6 nats"));
}

TEST_F(RunWatchTest, ARunIsFinishedOnceAllStepsAreDoneAndItsModelIsThere) {
  put("config.txtpb", "train {\n  steps: 2\n}\n");
  put("metrics.jsonl", "{\"step\":2,\"loss\":3}\n");
  look();
  EXPECT_FALSE(watch_.finished());
  put("model.safetensors", "");
  EXPECT_THAT(look(), HasSubstr(", finished"));
  EXPECT_TRUE(watch_.finished());
}

TEST_F(RunWatchTest, ShowsRanksAndTheLastFailure) {
  put("starts.jsonl", "{\"start\":\"a\",\"ranks\":8,\"begun\":\"x\",\"at_ns\":5}\n");
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3,\"starts\":1,\"restarts\":0}\n"
      "{\"step\":2,\"loss\":3,\"starts\":2,\"restarts\":1}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("ranks  8\n"));
  EXPECT_THAT(text, HasSubstr("the last: restart after step 1"));
}

TEST_F(RunWatchTest, FitsIntoATerminal) {
  std::string lines;
  for (int step = 1; step <= 100; ++step) {
    lines += "{\"step\":" + std::to_string(step) + ",\"loss\":3,\"lr\":1,\"grad_norm\":1}\n";
  }
  put("metrics.jsonl", lines);
  watch_.look();
  for (const int room : {3, 14, 24}) {
    const std::string text = watch_.text({.columns = 60}, room);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), room);
  }
}

TEST_F(RunWatchTest, ControlCharactersOfTextsDoNotReachTheTerminal) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3,\"skipped\":true,\"non_finite\":\"\\u001b[2J\"}\n");
  EXPECT_THAT(look(), Not(HasSubstr("\x1b")));
}

TEST_F(RunWatchTest, ShowsTheRanksSideBySideAndNamesTheSlowest) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3,\"rank_steps\":5,\"rank_compute_ms\":[80,100],"
      "\"rank_data_wait_ms\":[0,0],\"rank_exposed_comm_ms\":[21,1]}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("     1        100.0            -          0.0          1.0   comp"));
  EXPECT_THAT(text, HasSubstr("rank 1 is the slowest: compute, 20.0 ms"));
  // In a small terminal they come before the list of all quantities.
  EXPECT_THAT(watch_.text({}, 16), HasSubstr("rank 1 is the slowest"));
}

TEST_F(RunWatchTest, ARunThatHasItsLockAloneIsWaitedFor) {
  put("run.lock", "");
  EXPECT_THAT(look(), HasSubstr("waiting for a run in "));
  // Before the first step the config tells how many there will be.
  put("config.txtpb", "train {\n  steps: 10\n}\n");
  EXPECT_THAT(look(), HasSubstr("step 0/10 (0.0 %)"));
}

TEST_F(RunWatchTest, ADirectoryThatGoesAwayIsWaitedFor) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  look();
  std::filesystem::remove_all(run_);
  EXPECT_THAT(look(), HasSubstr("waiting for a run in "));
}

TEST_F(RunWatchTest, AFileIsNoRunDirectory) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  EXPECT_THAT(message_of<DataError>([&] { RunWatch(run_ / "metrics.jsonl"); }),
              HasSubstr("metrics.jsonl is no folder: expected a run directory"));
}

TEST_F(RunWatchTest, SaysWhatIsWrongWithTheMetrics) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\nno json\n{\"step\":2,\"loss\":\"NaN\"}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("problem  metrics.jsonl: 1 line is no JSON object, the first is "
                              "line 2.\n"));
  EXPECT_THAT(text, HasSubstr("problem  The loss of 1 step is not finite, the first of step 2"));
  append("{\"step\":3,\"loss\":\"Infinity\"}\n");
  EXPECT_THAT(look(), HasSubstr("The loss of 2 steps is not finite"));
  // The steps of a restart replace them.
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  EXPECT_THAT(look(), Not(HasSubstr("problem")));
}

TEST_F(RunWatchTest, ALineThatIsTooLongForAStepIsLeftOut) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n{\"text\":\"" + std::string(40 << 20, 'a'));
  EXPECT_THAT(look(), HasSubstr("step 1,"));
  append("\"}\n{\"step\":2,\"loss\":1}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("step 2,"));
  EXPECT_THAT(text, HasSubstr("1 line is no JSON object, the first is line 2"));
}

TEST_F(RunWatchTest, MetricsOfANewerVersionAreShownAsFarAsTheyAreKnown) {
  put("config.txtpb", "future {\n  speed: WARP\n}\ntrain {\n  steps: many\n}\n");
  put("starts.jsonl", "{\"start\":\"a\",\"ranks\":\"eight\"}\n");
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":{\"mean\":3},\"lr\":0.5,\"starts\":\"x\",\"rank_compute_ms\":{}}\n");
  const std::string text = look();
  EXPECT_THAT(text, HasSubstr("step 1, nobody"));
  EXPECT_THAT(text, HasSubstr("steps without a loss: another version"));
  EXPECT_THAT(text, HasSubstr("Learning rate"));
}

TEST_F(RunWatchTest, NumbersThatNoRunHasFitIntoTheirLines) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":1e308,\"step_ms\":1e308}\n"
      "{\"step\":2,\"loss\":-1e308,\"step_ms\":-5}\n");
  std::istringstream lines(look());
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 300u) << line;
}

TEST_F(RunWatchTest, SaysWhereTheRunStandsInOneLine) {
  const auto first_line = [&] {
    const std::string text = look();
    return text.substr(0, text.find('\n'));
  };
  put("metrics.jsonl", "{\"step\":1500,\"loss\":3,\"step_ms\":250}\n");
  EXPECT_EQ(first_line(), "run: step 1,500, nobody on this machine trains it now");
  put("config.txtpb", "train {\n  batch_size: 7\n  steps: 2000\n}\n");
  EXPECT_EQ(first_line(), "run: step 1,500/2,000 (75.0 %), nobody on this machine trains it now");
  put("model.safetensors", "");
  EXPECT_FALSE(watch_.finished()) << "not all steps are done";
  const RunLock lock(RunDirectory::open(run_));
  EXPECT_EQ(first_line(),
            "run: step 1,500/2,000 (75.0 %), training, 2:05 left at the last step's speed");
  append("{\"step\":2000,\"loss\":3,\"step_ms\":250}\n");
  EXPECT_EQ(first_line(), "run: step 2,000/2,000 (100.0 %), finished");
  std::filesystem::remove(run_ / "model.safetensors");
  EXPECT_EQ(first_line(), "run: step 2,000/2,000 (100.0 %), training");
}

TEST_F(RunWatchTest, ARunWithoutATotalOfStepsIsNeverFinished) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  put("model.safetensors", "");
  look();
  EXPECT_FALSE(watch_.finished());
}

TEST_F(RunWatchTest, ShowsTheLastValueAndTheRangeOfEachCurve) {
  put("metrics.jsonl",
      "{\"step\":1,\"lr\":3,\"exposed_comm_ms\":1}\n{\"step\":2,\"lr\":1}\n"
      "{\"step\":3,\"lr\":2}\n");
  EXPECT_EQ(look(),
            "run: step 3, nobody on this machine trains it now\n"
            "problem  metrics.jsonl has steps without a loss: another version of Lockstep may have "
            "written it.\n"
            "Learning rate                                  2   from 1 to 3\n"
            "Waiting, exposed communication              1 ms   from 1 ms to 1 ms\n");
}

TEST_F(RunWatchTest, ShowsHowTheLastStartEndedAndCountsFailuresAlone) {
  put("starts.jsonl",
      "{\"start\":\"a\",\"ranks\":2,\"at_ns\":5}\n"
      "{\"start\":\"a\",\"how\":\"stopped\",\"at_ns\":6}\n");
  put("metrics.jsonl",
      "{\"step\":1,\"starts\":1,\"restarts\":0,\"checkpoint_s\":0}\n"
      "{\"step\":2,\"starts\":2,\"restarts\":0}\n"
      "{\"step\":3,\"starts\":2,\"restarts\":0,\"checkpoint_s\":1}\n");
  EXPECT_THAT(look(), testing::EndsWith("ranks  2, stopped\n"));
  append(
      "{\"rollback_to\":1}\n{\"step\":2,\"skipped\":true,\"non_finite\":\"h.0\"}\n"
      "{\"step\":3,\"starts\":3,\"restarts\":1}\n"
      "{\"step\":4,\"starts\":3,\"restarts\":1,\"checkpoint_s\":2}\n");
  EXPECT_THAT(look(),
              testing::EndsWith("events  restarts, rollbacks and steps left out: 3; the last: "
                                "restart after step 2, start 3 of the run, from the checkpoint "
                                "of this step\n"));
}

TEST_F(RunWatchTest, ShowsTheNewestDealOfLeavesAndCountsItAsNoFailure) {
  put("metrics.jsonl", "{\"step\":1,\"rank_leaves\":[3,5]}\n");
  EXPECT_THAT(look(), testing::EndsWith("leaves  3, 5 of a step, by rank\n"));
  append(
      "{\"rollback_to\":0}\n"
      "{\"step\":1,\"rank_leaves\":[10,20,30,40,50,60,70,80,90,100,110,120,130]}\n");
  EXPECT_THAT(look(), testing::EndsWith(
                          "leaves  10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, ... of a "
                          "step, by rank\nevents  restarts, rollbacks and steps left out: 1; the "
                          "last: rollback after step 0, from step 1\n"));
}

TEST_F(RunWatchTest, AFileThatGoesAwayIsReadFromItsBeginningLater) {
  put("metrics.jsonl", "{\"step\":5,\"loss\":9}\n");
  look();
  std::filesystem::remove(run_ / "metrics.jsonl");
  EXPECT_THAT(look(), HasSubstr("waiting for a run in " + run_.string()));
  put("metrics.jsonl", "{\"step\":1,\"loss\":4}\n");
  EXPECT_THAT(look(), HasSubstr("from 4 nats to 4 nats"));
}

TEST_F(RunWatchTest, TheCurveFillsTheLinesThatAreLeft) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3,\"val_loss\":2}\n{\"step\":2,\"loss\":1}\n");
  watch_.look();
  const auto lines = [&](int room) {
    const std::string text = watch_.text({.columns = 60}, room);
    return std::count(text.begin(), text.end(), '\n');
  };
  // The line of state, 4 to 16 rows with 2 lines of axes and one for each curve, and two numbers.
  const int others = 1 + 2 + 2 + 2;
  for (const int room : {others + 4, others + 5, others + 16}) EXPECT_EQ(lines(room), room);
  EXPECT_EQ(lines(others + 17), others + 16);
  EXPECT_EQ(lines(3), 3);
  EXPECT_EQ(lines(0), 0);
}

}  // namespace
}  // namespace lockstep::train
