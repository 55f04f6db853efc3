#include "train/run/training_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/poisoned_task.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {
namespace {

class TrainingRunTest : public testing::Test {
 protected:
  TrainingRunTest() : terminal_(std::fopen("/dev/null", "w")) {}
  ~TrainingRunTest() override { std::fclose(terminal_); }

  /// Trains with NaN at `bad_batch`; `more` continues the config's train { }. Returns the batches
  /// that were computed.
  std::vector<int64_t> run(const std::string& name, const std::string& more, int64_t bad_batch) {
    const config::RunConfig config = tiny_run(folder_, "train { steps: 12 " + more);
    auto task = std::make_unique<PoisonedTask>(build_task(config), bad_batch);
    PoisonedTask& poisoned = *task;
    TrainingRun training(config, directory(name), "{}", std::move(task));
    summary_ = training.run({.terminal = terminal_});
    return poisoned.batches;
  }
  RunDirectory directory(const std::string& name) const {
    return RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kContinue);
  }

  TemporaryDirectory folder_;
  std::FILE* terminal_;
  RunSummary summary_;
};

TEST_F(TrainingRunTest, StopEndsWithTheStateBeforeTheStepSaved) {
  expect_error<NonFiniteError>([&] { run("stop", "}", 5); }, "step 6",
                               "loss is NaN (micro-batch 1 of 1)");
  const auto found = list_checkpoints(folder_ / "stop/checkpoints");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(verify_checkpoint(found[0].path).position, (Position{5, 5}));
  // Without the fault, training continues from the saved state.
  EXPECT_EQ(run("stop", "}", -1), (std::vector<int64_t>{5, 6, 7, 8, 9, 10, 11}));
}

TEST_F(TrainingRunTest, SkipLeavesOneUpdateOut) {
  const std::vector<int64_t> batches = run("skip", "non_finite: SKIP }", 5);
  EXPECT_EQ(batches.size(), 12u);
  const std::vector<MetricsRecord> records = read_metrics(folder_ / "skip");
  ASSERT_EQ(records.size(), 12u);
  EXPECT_TRUE(std::isnan(*records[5].loss));
  EXPECT_TRUE(says(file_content(folder_ / "skip/metrics.jsonl"),
                   R"x("skipped":true,"non_finite":"loss is NaN (micro-batch 1 of 1)")x"));
  EXPECT_TRUE(std::isfinite(*records[6].loss));
  const auto newest = list_checkpoints(folder_ / "skip/checkpoints").back();
  EXPECT_EQ(verify_checkpoint(newest.path).optimizer_steps, 11);
}

TEST_F(TrainingRunTest, RollbackGoesToTheCheckpointAndLeavesTheBatchesSinceOut) {
  const std::string policy = "non_finite: ROLLBACK } checkpoint { every_steps: 4 }";
  EXPECT_EQ(run("roll", policy, 5),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  const std::vector<MetricsRecord> records = read_metrics(folder_ / "roll");
  ASSERT_EQ(records.size(), 12u);
  for (const MetricsRecord& record : records) EXPECT_TRUE(std::isfinite(*record.loss));
  EXPECT_EQ(summary_.steps, 12);
}

TEST_F(TrainingRunTest, RollbackBeforeTheFirstCheckpointGoesToTheStart) {
  EXPECT_EQ(run("early", "non_finite: ROLLBACK }", 0).size(), 13u);
  EXPECT_EQ(read_metrics(folder_ / "early").size(), 12u);
}

TEST_F(TrainingRunTest, AStopBetweenStepsKeepsTheBatchPositionOfARollback) {
  const std::string policy = "non_finite: ROLLBACK } checkpoint { every_steps: 4 }";
  run("whole", policy, 5);
  {
    const config::RunConfig config = tiny_run(folder_, "train { steps: 12 " + policy);
    TrainingRun first(config, directory("parts"), "{}",
                      std::make_unique<PoisonedTask>(build_task(config), 5));
    int asked = 0;
    const RunSummary stopped =
        first.run({.terminal = terminal_, .stop = [&] { return ++asked > 12; }});
    EXPECT_EQ(stopped.end, RunEnd::kStopped);
    EXPECT_LT(stopped.steps, 12);
  }
  run("parts", policy, 5);
  EXPECT_EQ(file_content(folder_ / "parts/model.safetensors"),
            file_content(folder_ / "whole/model.safetensors"));
}

TEST_F(TrainingRunTest, AnOverflowOfF16IsRecordedAndEndsNothing) {
  const config::RunConfig config = tiny_run(folder_, "precision: F16_MIXED train { steps: 12 }");
  TrainingRun training(config, directory("f16"), "{}");
  training.trainer().scaler().load_state({.scale = 0x1p18});
  training.run({.terminal = terminal_});
  const std::string metrics = file_content(folder_ / "f16/metrics.jsonl");
  const std::string first = metrics.substr(0, metrics.find('\n'));
  EXPECT_TRUE(first.find("\"loss_scale\":262144") != std::string::npos) << first;
  EXPECT_TRUE(first.find("\"skipped\":true") != std::string::npos) << first;
  EXPECT_TRUE(metrics.find("\"loss_scale\":131072") != std::string::npos) << metrics;
  const auto newest = list_checkpoints(folder_ / "f16/checkpoints").back();
  const CheckpointManifest manifest = verify_checkpoint(newest.path);
  EXPECT_LT(manifest.optimizer_steps, 12);
  EXPECT_GT(manifest.optimizer_steps, 0);
  EXPECT_EQ(manifest.position.step, 12);
  EXPECT_EQ(manifest.grad_scaler, training.trainer().scaler().state());
}

TEST_F(TrainingRunTest, AGradientThatIsNotFiniteAtTheSmallestScaleEndsTheRun) {
  const config::RunConfig config = tiny_run(folder_, "precision: F16_MIXED train { steps: 6 }");
  for (const bool smallest : {false, true}) {
    auto task = std::make_unique<PoisonedTask>(build_task(config), 3, /*only_gradient=*/true);
    TrainingRun training(config, directory(smallest ? "smallest" : "larger"), "{}",
                         std::move(task));
    // The smallest scale: 1 / 128 for the sum over the 128 targets of a step is 1 for their mean.
    const GradScalerState state{.scale = smallest ? 1.0 / 128 : 1.0};
    training.trainer().scaler().load_state(state);
    if (smallest) {
      EXPECT_THROW(training.run({.terminal = terminal_}), NonFiniteError);
      EXPECT_EQ(training.trainer().scaler().get_scale(), state.scale);
    } else {
      training.run({.terminal = terminal_});
      EXPECT_EQ(training.trainer().scaler().get_scale(), state.scale / 2);
      EXPECT_EQ(training.trainer().optimizer().steps(), 5);
    }
  }
}

/// Makes each checkpoint take a second, as on a slow disk.
class SlowToSave final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  std::vector<std::string> describe(const std::filesystem::path& folder) const override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return ForwardingTask::describe(folder);
  }
};

TEST_F(TrainingRunTest, ATimeLimitLeavesTimeForASlowCheckpoint) {
  const config::RunConfig config =
      tiny_run(folder_, "train { steps: 1000 } checkpoint { every_steps: 1 }");
  TrainingRun training(config, directory("slow"), "{}",
                       std::make_unique<SlowToSave>(build_task(config)));
  // After the second step more than one second has passed, and saving takes another one.
  const RunSummary summary = training.run({.terminal = terminal_, .time_limit = 1.9});
  EXPECT_EQ(summary.end, RunEnd::kStopped);
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(
      verify_checkpoint(list_checkpoints(folder_ / "slow/checkpoints").back().path).position.step,
      2);
}

TEST_F(TrainingRunTest, GoodputTellsTheEndAndAllOfTheWallTime) {
  run("whole", "}", -1);
  const auto json = nlohmann::json::parse(file_content(folder_ / "whole/goodput.json"));
  EXPECT_EQ(json["ended"], "finished");
  EXPECT_EQ(json["steps"], 12);
  EXPECT_LE(json["wall_s"], summary_.times.wall);
  EXPECT_GT(json["train_s"], 0);
  double sum = json["other_s"];
  for (const char* use :
       {"train_s", "data_s", "evaluation_s", "checkpoint_s", "redone_s", "start_s", "restart_s"}) {
    sum += json[use].get<double>();
  }
  EXPECT_NEAR(sum, json["wall_s"], 1e-5);
}

TEST_F(TrainingRunTest, WeightsToStartFromAreNotNeededToGoOn) {
  const config::RunConfig plain = tiny_run(folder_, "train { steps: 2 }");
  TrainingRun(plain, directory("first"), "{}").run({.terminal = terminal_});
  const std::string weights = (folder_ / "first/model.safetensors").string();
  const auto second = [&](int64_t steps) {
    const config::RunConfig config = tiny_run(
        folder_, fmt::format("train {{ steps: {} }} model {{ weights: \"{}\" }}", steps, weights));
    TrainingRun(config, directory("second"), "{}").run({.terminal = terminal_});
  };
  second(2);
  const auto first_loss = [&](const char* name) {
    return read_metrics(folder_ / name / "metrics.jsonl").front().loss;
  };
  EXPECT_NE(first_loss("second"), first_loss("first")) << "it begins with the weights of the first";
  std::filesystem::remove(weights);
  EXPECT_NO_THROW(second(4));
}

}  // namespace
}  // namespace lockstep::train
