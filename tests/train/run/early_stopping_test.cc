// train.early_stopping and checkpoint.keep_best.

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

/// Evaluates to the losses of a list, one after the other, and from its end on to the last.
class ScriptedTask final : public ForwardingTask {
 public:
  ScriptedTask(std::unique_ptr<Task> task, std::vector<double> losses)
      : ForwardingTask(std::move(task)), losses_(std::move(losses)) {}
  std::optional<Evaluation> evaluate(const HeldOutPart& part) override {
    std::optional<Evaluation> result = ForwardingTask::evaluate(part);
    if (result && part.max_batches > 0) {
      result->loss = losses_[std::min(count_++, losses_.size() - 1)];
    }
    return result;
  }

 private:
  std::vector<double> losses_;
  size_t count_ = 0;
};

class NothingHeldOut final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  bool holds_out() const override { return false; }
};

struct Ended {
  RunSummary summary;
  std::vector<std::string> checkpoints;
  std::string best;  ///< what the link names
};

class EarlyStopping : public testing::Test {
 protected:
  /// Trains 20 steps with an evaluation after every second; asked to stop in step `stop_in`, from
  /// 0.
  Ended run(const std::string& more, const std::vector<double>& losses, int64_t stop_in = 100) {
    const config::RunConfig config = layered_run(
        folder_, "train { eval_every: 2 eval_batches: 1 } checkpoint { every_steps: 0 } " + more);
    TrainingRun training(
        config, RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue), "{}",
        std::make_unique<ScriptedTask>(build_task(config), losses));
    std::FILE* const terminal = std::fopen((folder_ / "terminal").c_str(), "a");
    int64_t current = 0;
    Ended ended{training.run({.terminal = terminal,
                              .stop = [&] { return current >= stop_in; },
                              .before_step = [&](int64_t step) { current = step; }}),
                {},
                {}};
    std::fclose(terminal);
    const fs::path checkpoints = folder_ / "run" / "checkpoints";
    for (const CheckpointEntry& each : list_checkpoints(checkpoints)) {
      ended.checkpoints.push_back(each.path.filename().string());
    }
    if (fs::is_symlink(checkpoints / "best")) {
      ended.best = fs::read_symlink(checkpoints / "best").string();
    }
    return ended;
  }

  TemporaryDirectory folder_;
};

TEST_F(EarlyStopping, EndsWhenTheLossHasNotFallenForSoManyEvaluations) {
  const Ended ended = run("train { early_stopping { patience: 3 } }", {3, 2, 2.5, 2, 2.1, 1});
  EXPECT_EQ(ended.summary.end, RunEnd::kNoProgress);
  EXPECT_EQ(ended.summary.steps, 10);
  EXPECT_GT(ended.summary.held_out.targets, 0) << "all held-out data, after the end";
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model.safetensors"));
  EXPECT_EQ(ended.checkpoints, std::vector<std::string>{"step-00000010"});
  EXPECT_TRUE(says(file_content(folder_ / "terminal"),
                   "training ends: the held-out loss has not fallen for 3 evaluations "
                   "(train.early_stopping.patience); it was lowest, 2.0000, after step 4"));
}

TEST_F(EarlyStopping, ARunThatEndedEarlyIsFinished) {
  const std::string more = "train { early_stopping { patience: 1 } }";
  EXPECT_EQ(run(more, {1, 2}).summary.steps, 4);
  const Ended again = run(more, {0.5});
  EXPECT_EQ(again.summary.end, RunEnd::kNoProgress);
  EXPECT_EQ(again.summary.first_step, 4);
  EXPECT_EQ(again.summary.steps, 4);
  // More patience lets it go on.
  EXPECT_EQ(run("train { early_stopping { patience: 3 } }", {2}).summary.steps, 8);
}

TEST_F(EarlyStopping, PatienceIsCountedOnAfterAStop) {
  const Ended stopped = run("train { early_stopping { patience: 3 } }", {1, 2}, 4);
  EXPECT_EQ(stopped.summary.end, RunEnd::kStopped);
  EXPECT_EQ(stopped.summary.steps, 5);
  const Ended ended = run("train { early_stopping { patience: 3 } }", {2});
  EXPECT_EQ(ended.summary.end, RunEnd::kNoProgress);
  EXPECT_EQ(ended.summary.steps, 8);
}

TEST_F(EarlyStopping, WithoutARuleAllStepsAreDone) {
  const Ended ended = run("", {1, 2, 3});
  EXPECT_EQ(ended.summary.end, RunEnd::kFinished);
  EXPECT_EQ(ended.summary.steps, 20);
  EXPECT_EQ(ended.best, "");
}

TEST_F(EarlyStopping, TheBestCheckpointIsKept) {
  const Ended ended = run("checkpoint { keep_best: true keep_last: 1 }", {3, 2, 2.5, 1.5, 4});
  EXPECT_EQ(ended.summary.end, RunEnd::kFinished);
  EXPECT_EQ(ended.checkpoints, (std::vector<std::string>{"step-00000008", "step-00000020"}));
  EXPECT_EQ(ended.best, "step-00000008");
  EXPECT_EQ(verify_checkpoint(folder_ / "run/checkpoints/best").held_out->lowest, 1.5);
}

TEST_F(EarlyStopping, TheBestCheckpointIsKeptAfterAStop) {
  const std::string more = "checkpoint { keep_best: true keep_last: 1 }";
  run(more, {3, 2, 2.5}, 8);
  const Ended ended = run(more, {2.2, 2.3});
  EXPECT_EQ(ended.checkpoints, (std::vector<std::string>{"step-00000004", "step-00000020"}));
  EXPECT_EQ(ended.best, "step-00000004");
}

TEST_F(EarlyStopping, NeedsEvaluationsAndHeldOutData) {
  const auto problem = [&](const std::string& more) {
    return message_of<config::SourceError>([&] { layered_run(folder_, more); });
  };
  EXPECT_TRUE(says(problem("train { early_stopping { patience: 3 } }"),
                   "train.early_stopping.patience goes by the held-out loss during training: "
                   "expected train.eval_every above 0, got 0"));
  EXPECT_TRUE(says(problem("checkpoint { keep_best: true }"), "checkpoint.keep_best goes by"));
  const auto expect_refusal = [&](const std::string& more, const std::string& text) {
    const config::RunConfig config = layered_run(folder_, "train { eval_every: 2 } " + more);
    expect_error<ConfigError>(
        [&] {
          TrainingRun(config,
                      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue),
                      "{}", std::make_unique<NothingHeldOut>(build_task(config)));
        },
        text);
  };
  expect_refusal(
      "train { early_stopping { patience: 3 } }",
      "[train] train.early_stopping goes by the held-out loss, but the run holds no data out");
  expect_refusal("checkpoint { keep_best: true }",
                 "[train] checkpoint.keep_best goes by the held-out");
  expect_refusal("checkpoint { keep_best: true }", "or leave keep_best out.");
}

TEST(EarlyStoppingOfRanks, AllRanksEndTogether) {
  for (const char* strategy : {"DDP", "FULL_SHARD"}) {
    const TemporaryDirectory folder;
    // Nothing falls by as much.
    const config::RunConfig config = layered_run(
        folder,
        std::string("train { eval_every: 2 early_stopping { patience: 2 min_delta: 1000 } } "
                    "checkpoint { keep_best: true } parallel { strategy: ") +
            strategy + " }");
    rethrow_first(run_on_ranks(config, folder, 2));
    const auto newest = list_checkpoints(folder / "run/checkpoints").back();
    EXPECT_EQ(newest.step, 6) << strategy;
    EXPECT_TRUE(fs::exists(folder / "run/checkpoints/best/checkpoint.json"));
  }
}

}  // namespace
}  // namespace lockstep::train
