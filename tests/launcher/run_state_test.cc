// What a run leaves on disk, and what the program's verbs make of it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/launcher/text_run.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

class RunState : public TextRun {
 protected:
  RunState() : TextRun(6) {}
  /// Flips a bit in the last byte of a file: in the last tensor of a safetensors file.
  void damage(const std::string& name) const {
    std::string content = file_content(folder_ / name);
    content.back() = static_cast<char>(content.back() ^ 1);
    put_file(folder_ / name, content);
  }
  /// Contents and times of all files in a folder.
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files(
      const std::string& directory) const {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / directory)) {
      if (!entry.is_regular_file()) continue;
      found[entry.path().string()] = {file_content(entry.path()), entry.last_write_time()};
    }
    return found;
  }
};

TEST_F(RunState, StartingAFinishedRunAgainChangesNoFile) {
  ASSERT_EQ(train("run").status, 0);
  const auto before = files("run");
  const Result again = train("run");
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_TRUE(says(again.output, "all 6 steps were done before"));
  EXPECT_EQ(files("run"), before);
}

TEST_F(RunState, AFinishedRunWithoutItsWeightsGetsThemAgain) {
  ASSERT_EQ(train("run").status, 0);
  const std::string weights = file_content(folder_ / "run/model.safetensors");
  damage("run/model.safetensors");
  ASSERT_EQ(train("run").status, 0);
  EXPECT_EQ(file_content(folder_ / "run/model.safetensors"), weights);
  EXPECT_EQ(run("checkpoint verify run").status, 0);
}

TEST_F(RunState, DamagedFinalWeightsAreRefusedByAllThatReadThem) {
  ASSERT_EQ(train("run").status, 0);
  damage("run/model.safetensors");
  for (const char* command :
       {"eval run", "sample run", "checkpoint convert run out --to hf", "eval run --weights run",
        "compare run run", "train run.txtpb --run-dir new --set model.weights=run",
        "train run.txtpb --run-dir new --set model.weights=run/model.safetensors"}) {
    const Result result = run(command);
    EXPECT_EQ(result.status, 4) << command << result.errors;
    EXPECT_TRUE(says(result.errors, "run/model.safetensors: tensor")) << command;
    EXPECT_TRUE(says(result.errors, "is not what was written")) << command;
  }
  const Result verified = run("checkpoint verify run");
  EXPECT_EQ(verified.status, 4);
  EXPECT_TRUE(says(verified.output, "run/model.safetensors  DAMAGED"));
}

TEST_F(RunState, DamagedWeightsOfACheckpointAreRefusedByAllThatReadThem) {
  ASSERT_EQ(train("run").status, 0);
  fs::remove(folder_ / "run/model.safetensors");
  damage("run/checkpoints/step-00000006/model.safetensors");
  for (const char* command : {"eval run", "sample run"}) {
    const Result result = run(command);
    EXPECT_EQ(result.status, 4) << command;
    EXPECT_TRUE(says(result.errors, "step-00000006/model.safetensors: tensor")) << command;
  }
}

TEST_F(RunState, CompareLooksAtWeights) {
  ASSERT_EQ(train("a").status, 0);
  ASSERT_EQ(train("b").status, 0);
  const Result same = run("compare a b");
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_TRUE(says(same.output, "weights: identical"));
  // Other weights after the same losses, in a run without a manifest.
  fs::remove(folder_ / "b/model.manifest.json");
  damage("b/model.safetensors");
  const Result other = run("compare a b");
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(says(other.output, "weights: tensor \""));
  // A run that is not finished is compared by its checkpoints.
  fs::remove(folder_ / "b/model.safetensors");
  const Result unfinished = run("compare a b");
  EXPECT_EQ(unfinished.status, 0) << unfinished.output;
  EXPECT_TRUE(says(unfinished.output, "checkpoints/step-00000006"));
}

TEST_F(RunState, ARunWhoseCheckpointsAreGoneDoesNotStartAgain) {
  ASSERT_EQ(train("run", "--steps 5").status, 0);
  fs::remove_all(folder_ / "run/checkpoints");
  const auto before = files("run");
  const Result finished = train("run");
  EXPECT_EQ(finished.status, 4) << finished.errors;
  EXPECT_TRUE(says(finished.errors, "holds the weights of its end"));
  fs::remove(folder_ / "run/model.safetensors");
  fs::remove(folder_ / "run/first_checkpoint.json");
  const Result stopped = train("run");
  EXPECT_EQ(stopped.status, 4) << stopped.errors;
  EXPECT_TRUE(says(stopped.errors, "step 5 was trained"));
  EXPECT_EQ(file_content(folder_ / "run/metrics.jsonl"),
            before.at((folder_ / "run/metrics.jsonl").string()).first);
}

TEST_F(RunState, WhateverIsLeftOfAHistoryKeepsTrainingFromStartingAgain) {
  const auto expect_refused = [&](const std::vector<std::string>& lost, const std::string& reason) {
    fs::remove_all(folder_ / "part");
    fs::copy(folder_ / "run", folder_ / "part", fs::copy_options::recursive);
    for (const std::string& name : lost) fs::remove_all(folder_ / "part" / name);
    const Result result = train("part");
    EXPECT_EQ(result.status, 4) << reason << result.errors;
    EXPECT_TRUE(says(result.errors, reason)) << result.errors;
  };
  ASSERT_EQ(train("run", "--steps 2").status, 0);  // no step follows the first checkpoint
  expect_refused({"checkpoints", "metrics.jsonl", "first_checkpoint.json"},
                 "holds the weights of its end");
  expect_refused({"checkpoints", "model.safetensors"}, "first_checkpoint.json says");
  expect_refused({"checkpoints/step-00000002", "model.safetensors", "metrics.jsonl"},
                 "first_checkpoint.json says");
  expect_refused({"checkpoints", "model.safetensors", "first_checkpoint.json", "config.txtpb"},
                 "config.txtpb is missing");
}

TEST_F(RunState, AFinishedRunIsNotPrunedByStartingItAgain) {
  ASSERT_EQ(train("run").status, 0);
  fs::remove(folder_ / "run/checkpoints/step-00000002/checkpoint.json");
  const auto before = files("run");
  ASSERT_EQ(train("run", "--set checkpoint.keep_last=1").status, 0);
  EXPECT_EQ(files("run"), before);
}

TEST_F(RunState, VerifyReadsFinalWeightsWithoutTheLockFile) {
  ASSERT_EQ(train("run").status, 0);
  fs::remove(folder_ / "run/run.lock");
  EXPECT_TRUE(says(run("checkpoint verify run").output, "whole: weights of the run's end"));
  damage("run/model.safetensors");
  for (const char* path : {"run", "run/checkpoints"}) {
    const Result verified = run(fmt::format("checkpoint verify {}", path));
    EXPECT_EQ(verified.status, 4) << path;
    EXPECT_TRUE(says(verified.output, "run/model.safetensors  DAMAGED")) << path;
  }
  EXPECT_EQ(run("checkpoint verify run/checkpoints/step-00000002").status, 0);
}

TEST_F(RunState, VerifyCallsFinalWeightsThatCannotBeReadUnreadable) {
  ASSERT_EQ(train("run").status, 0);
  fs::remove(folder_ / "run/model.safetensors");
  fs::create_symlink("/nowhere/weights", folder_ / "run/model.safetensors");
  const Result verified = run("checkpoint verify run");
  EXPECT_EQ(verified.status, 4);
  EXPECT_TRUE(says(verified.output, "run/model.safetensors  UNREADABLE")) << verified.output;
}

TEST_F(RunState, MetricsKeepOneLineAStepAfterAKill) {
  ASSERT_EQ(train("run", "--steps 4 --set schedule.decay_steps=6").status, 0);
  std::string metrics = file_content(folder_ / "run/metrics.jsonl");
  const std::string fourth = metrics.substr(metrics.rfind("{\"step\":4,"));
  put_file(folder_ / "run/metrics.jsonl",
           metrics + "{\"step\":5,\"loss\":1}\n{\"step\":6,\"loss\":1}\n{\"step\":7,");
  ASSERT_EQ(train("run").status, 0);
  metrics = file_content(folder_ / "run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 6);
  EXPECT_TRUE(says(metrics, fourth + "{\"step\":5,"));
  EXPECT_EQ(metrics.find("\"loss\":1}"), metrics.npos);
}

TEST_F(RunState, TemporaryFilesOfDeadProcessesGo) {
  ASSERT_EQ(train("run", "--steps 2").status, 0);
  // No process has a number above the system's limit of 2^22.
  put_file(folder_ / "run/model.safetensors.partial-99999999", "x");
  put_file(folder_ / "run/mine.partial-x", "x");
  put_file(folder_ / fmt::format("run/config.txtpb.partial-{}", ::getpid()), "x");
  ASSERT_EQ(train("run").status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "run/model.safetensors.partial-99999999"));
  EXPECT_TRUE(fs::exists(folder_ / "run/mine.partial-x"));
  EXPECT_TRUE(fs::exists(folder_ / fmt::format("run/config.txtpb.partial-{}", ::getpid())));
}

TEST_F(RunState, RemovingTheLockAdmitsNoSecondRunAndVerifySaysWhoTrains) {
  const Result result = shell(fmt::format(
      "'{0}/lockstep' train run.txtpb --run-dir busy --set train.steps=1000000 2> first & "
      "while ! test -d busy/checkpoints/step-00000002; do sleep 0.01; done; "
      "'{0}/lockstep' checkpoint verify busy > verified; echo $? > verify_status; rm "
      "busy/run.lock; "
      "'{0}/lockstep' train run.txtpb --run-dir busy; status=$?; kill -KILL $!; exit $status",
      LOCKSTEP_BIN_DIR));
  EXPECT_EQ(result.status, 2) << result.errors;
  EXPECT_TRUE(says(result.errors, "a run is there already"));
  EXPECT_TRUE(says(result.errors, "its run.lock was removed"));
  EXPECT_EQ(file_content(folder_ / "verify_status"), "0\n");
  EXPECT_TRUE(says(file_content(folder_ / "verified"), "is being trained by host "));
}

TEST_F(RunState, ALimitOfTheFileSizeIsAWriteErrorWithTheFilesName) {
  const Result result = shell(
      fmt::format("ulimit -f 4; '{}/lockstep' train run.txtpb --run-dir run", LOCKSTEP_BIN_DIR));
  EXPECT_TRUE(result.status == 3 || result.status == 4) << result.status << result.errors;
  EXPECT_TRUE(says(result.errors, "[write] run/"));
  EXPECT_TRUE(says(result.errors, "File too large"));
}

}  // namespace
}  // namespace lockstep::launcher
