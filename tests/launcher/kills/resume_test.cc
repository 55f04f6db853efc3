// Runs that are stopped, killed or damaged, and then resumed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

class ResumeTest : public Program {
 protected:
  ResumeTest() {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += fmt::format("{} quick brown foxes. ", i % 37);
    put_file(folder_ / "text.txt", text);
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 32 layers: 2 heads: 2 width: 32 dropout: 0.1 } }\n"
             "data { text { path: \"text.txt\" held_out_bytes: 1000 } order: SHUFFLED }\n"
             "train { steps: 60 batch_size: 8 micro_batch_size: 2 leaves: 2 eval_every: 20\n"
             "        eval_batches: 2 sample_bytes: 0 }\n"
             "checkpoint { every_steps: 7 keep_last: 2 }\n");
  }
  Result train(const std::string& directory, const std::string& more = "") const {
    return run(fmt::format("train run.txtpb --run-dir {} {}", directory, more));
  }
  std::string file(const std::string& name) const { return file_content(folder_ / name); }
  std::vector<std::string> checkpoints(const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / (directory + "/checkpoints"))) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
  void expect_identical(const std::string& a, const std::string& b) const {
    const Result compared = run(fmt::format("compare {} {}", a, b));
    EXPECT_EQ(compared.status, 0) << compared.output << compared.errors;
    EXPECT_EQ(file(a + "/model.safetensors"), file(b + "/model.safetensors"));
  }
};

TEST_F(ResumeTest, ARunKilledAtAnyTimeGoesOnToTheSameBits) {
  ASSERT_EQ(train("whole").status, 0);
  std::mt19937 random(7);
  int kills = 0;
  for (int run = 0; run < 3; ++run) {
    const std::string directory = fmt::format("killed-{}", run);
    Result last;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const double seconds =
          0.05 + 0.1 * attempt * (0.5 + std::generate_canonical<double, 32>(random));
      // With --foreground, timeout does not kill itself as well but waits for the program's end,
      // and so until its lock is free.
      last = shell(
          fmt::format("timeout --foreground -s KILL {:.3f} '{}/lockstep' train run.txtpb --run-dir "
                      "{}",
                      seconds, LOCKSTEP_BIN_DIR, directory));
      // 124: the program had ended by itself just before it was to be killed.
      if (last.status != 137 && last.status != 124) break;
      if (last.status == 137) ++kills;
    }
    ASSERT_EQ(last.status, 0) << last.errors;
    expect_identical("whole", directory);
  }
  EXPECT_GE(kills, 3);
}

TEST_F(ResumeTest, AStopRequestFinishesTheStepSavesAndEndsWith75) {
  ASSERT_EQ(train("whole").status, 0);
  for (const char* signal : {"INT", "TERM", "USR1"}) {
    const std::string directory = std::string("stopped-") + signal;
    // A shell ignores SIGINT in background processes, but a program may install its own handler.
    const Result stopped = shell(
        fmt::format("'{}/lockstep' train run.txtpb --run-dir {} "
                    "--set train.steps=100000 --set checkpoint.every_steps=0 & "
                    "while ! test -s {}/metrics.jsonl; do sleep 0.01; done; kill -{} $!; wait $!",
                    LOCKSTEP_BIN_DIR, directory, directory, signal));
    EXPECT_EQ(stopped.status, 75) << signal << stopped.errors;
    EXPECT_TRUE(says(stopped.errors, "everything is saved"));
    EXPECT_TRUE(says(stopped.errors, "--run-dir " + directory));
    const std::string metrics = file(directory + "/metrics.jsonl");
    const auto steps = std::count(metrics.begin(), metrics.end(), '\n');
    EXPECT_EQ(checkpoints(directory).back(), fmt::format("step-{:08}", steps));
  }
}

TEST_F(ResumeTest, ATimeLimitStopsInTimeAndTheNextStartGoesOn) {
  const std::string rarely = "--set checkpoint.every_steps=0 ";
  ASSERT_EQ(train("whole").status, 0);
  ASSERT_EQ(train("limited", rarely + "--time-limit 0.001").status, 75);
  int starts = 1;
  while (starts < 100 && train("limited", rarely + "--time-limit 0.3").status == 75) ++starts;
  expect_identical("whole", "limited");
}

TEST_F(ResumeTest, ASecondSignalEndsAtOnce) {
  const Result result = shell(
      fmt::format("'{}/lockstep' train run.txtpb --run-dir r --set train.steps=100000 --set "
                  "train.batch_size=1024 --set train.micro_batch_size=1024 --set train.leaves=1 "
                  "--set model.gpt2.width=512 & "
                  "while kill -0 $! && ! test -s r/config_origins.txtpb; do sleep 0.01; done; "
                  "sleep 0.3; kill -TERM $!; sleep 0.1; kill -TERM $!; wait $!",
                  LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 128 + 15);
}

TEST_F(ResumeTest, FinishedStepsAreNotTrainedAgainAndMoreStepsGoOn) {
  ASSERT_EQ(train("more", "--steps 30 --set schedule.decay_steps=60").status, 0);
  ASSERT_EQ(train("more", "--steps 60 --set schedule.decay_steps=60").status, 0);
  ASSERT_EQ(train("whole", "--steps 60 --set schedule.decay_steps=60").status, 0);
  EXPECT_EQ(file("more/model.safetensors"), file("whole/model.safetensors"));
  const std::string metrics = file("more/metrics.jsonl");
  const Result again = train("more", "--set schedule.decay_steps=60");
  EXPECT_EQ(again.status, 0);
  EXPECT_TRUE(says(again.output, "all 60 steps were done before"));
  EXPECT_EQ(file("more/metrics.jsonl"), metrics);
}

TEST_F(ResumeTest, ADamagedCheckpointIsNamedAndTheOlderOneUsed) {
  ASSERT_EQ(train("whole").status, 0);
  ASSERT_EQ(train("damaged", "--steps 21 --set schedule.decay_steps=60").status, 0);
  const std::string path = "damaged/checkpoints/step-00000021/model.safetensors";
  std::string content = file(path);
  content.back() = static_cast<char>(content.back() ^ 8);
  put_file(folder_ / path, content);

  EXPECT_EQ(run("checkpoint verify damaged").status, 4);
  const Result resumed = train("damaged");
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_TRUE(says(resumed.errors, path));
  EXPECT_TRUE(says(resumed.errors, "step-00000014: 14 steps are done"));
  expect_identical("whole", "damaged");
}

TEST_F(ResumeTest, WhenEveryCheckpointIsDamagedTheRunEndsWithFour) {
  ASSERT_EQ(train("damaged", "--steps 14").status, 0);
  for (const char* step : {"07", "14"}) {
    const auto path =
        folder_ / fmt::format("damaged/checkpoints/step-000000{}/model.safetensors", step);
    fs::resize_file(path, fs::file_size(path) - 1);
  }
  const Result result = train("damaged");
  EXPECT_EQ(result.status, 4);
  EXPECT_TRUE(says(result.errors, "none of the 2 checkpoints"));
}

TEST_F(ResumeTest, FreshRefusesAFolderThatIsNotEmpty) {
  ASSERT_EQ(train("used", "--steps 1 --fresh").status, 0);
  const std::string before = file("used/metrics.jsonl");
  const Result refused = train("used", "--fresh");
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(says(refused.errors, "used is not empty"));
  EXPECT_EQ(file("used/metrics.jsonl"), before);
}

TEST_F(ResumeTest, ASecondRunInTheSameFolderIsToldWhoIsThere) {
  const Result result = shell(fmt::format(
      "'{0}/lockstep' train run.txtpb --run-dir busy --set train.steps=1000000 2> first & "
      "while ! test -s busy/metrics.jsonl; do sleep 0.01; done; echo pid $!.; "
      "'{0}/lockstep' train run.txtpb --run-dir busy; status=$?; kill -KILL $!; exit $status",
      LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 2);
  const std::string pid = result.output.substr(0, result.output.find('.'));
  EXPECT_TRUE(says(result.errors, pid + ")"));
  EXPECT_TRUE(says(result.errors, "host "));
}

TEST_F(ResumeTest, OnlyTheNewestCheckpointsAndMilestonesStay) {
  ASSERT_EQ(train("kept", "--set checkpoint.keep_every=21").status, 0);
  EXPECT_EQ(checkpoints("kept"), (std::vector<std::string>{"step-00000021", "step-00000042",
                                                           "step-00000056", "step-00000060"}));
}

TEST_F(ResumeTest, CheckpointVerbsListAndVerify) {
  ASSERT_EQ(train("kept").status, 0);
  const Result listed = run("checkpoint ls kept");
  EXPECT_EQ(listed.status, 0);
  EXPECT_TRUE(says(listed.output, "kept/checkpoints/step-00000060"));
  EXPECT_TRUE(says(run("checkpoint ls kept --json").output, "\"step\":56,\"complete\":true"));
  const Result verified = run("checkpoint verify kept/checkpoints/step-00000056");
  EXPECT_EQ(verified.status, 0);
  EXPECT_TRUE(says(verified.output, "whole"));
  EXPECT_EQ(run("checkpoint ls .").status, 4);
}

TEST_F(ResumeTest, EvalRepeatsTheHeldOutLossAndReadsACheckpointOfAnUnfinishedRun) {
  ASSERT_EQ(train("done").status, 0);
  const std::string metrics = file("done/metrics.jsonl");
  const size_t at = metrics.rfind("\"val_loss\":");
  const std::string loss = metrics.substr(at + 11, metrics.find(',', at) - at - 11);
  EXPECT_TRUE(says(run("eval done --json").output, "\"loss\":" + loss));
  fs::remove(folder_ / "done/model.safetensors");
  const Result unfinished = run("eval done");
  EXPECT_EQ(unfinished.status, 0);
  EXPECT_TRUE(says(unfinished.output, "checkpoints/step-00000060"));
  EXPECT_TRUE(says(unfinished.output, "bits per byte"));
  EXPECT_EQ(run("sample done --num_samples 1 --max_new_tokens 5").status, 0);
  fs::remove_all(folder_ / "done/checkpoints");
  EXPECT_EQ(run("eval done").status, 4);
}

TEST_F(ResumeTest, ANonFiniteStepIsSkippedSaidAndFinallyGivenUp) {
  const std::string wild =
      "--set optimizer.learning_rate=1000 --set optimizer.clip_grad_norm=0 "
      "--set optimizer.sgd.momentum=0.9 --set train.non_finite_limit=3 ";
  const Result skipped = train("skip", wild + "--set train.non_finite=SKIP");
  EXPECT_EQ(skipped.status, 7) << skipped.errors;
  const std::string metrics = file("skip/metrics.jsonl");
  size_t lines = 0;
  for (size_t at = 0; (at = metrics.find("\"skipped\":true", at)) != metrics.npos; ++at) ++lines;
  EXPECT_EQ(lines, 4u);

  const Result stopped = train("stop", wild);
  EXPECT_EQ(stopped.status, 7);
  EXPECT_TRUE(says(stopped.errors, "the state before the step is in stop/checkpoints"));
  EXPECT_EQ(run("checkpoint verify stop").status, 0);

  const Result rolled = train("roll", wild + "--set train.non_finite=ROLLBACK");
  EXPECT_EQ(rolled.status, 7);
  EXPECT_TRUE(says(file("roll/metrics.jsonl"), "\"rollback_to\":"));
}

TEST_F(ResumeTest, SamplesDuringTrainingAreShownAndKept) {
  const Result result = train("s",
                              "--set train.sample_every=20 --set train.sample_bytes=30 "
                              "--set checkpoint.every_steps=0");
  ASSERT_EQ(result.status, 0);
  EXPECT_TRUE(says(result.errors, "--- sample after step 20"));
  EXPECT_TRUE(says(file("s/samples.jsonl"), "{\"step\":40,\"text\":"));
}

}  // namespace
}  // namespace lockstep::launcher
