// Runs with train.loss_spike.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"
#include "train/build.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

/// Multiplies the losses of some batches by 40, and with them their gradients.
class SpikingTask final : public ForwardingTask {
 public:
  SpikingTask(std::unique_ptr<Task> task, std::vector<int64_t> batches)
      : ForwardingTask(std::move(task)), spiking_(std::move(batches)) {}

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    batches.push_back(batch);
    if (at_batch) at_batch(batch);
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (std::ranges::count(spiking_, batch) > 0) loss.sum = loss.sum * 40;
    return loss;
  }

  /// Sample 1 has most of a batch's loss.
  Tensor losses(int64_t batch, int64_t first, int64_t count) override {
    const Tensor losses = ForwardingTask::losses(batch, first, count);
    if (first <= 1 && 1 < first + count) losses.narrow(0, 1 - first, 1).mul_(40);
    return losses;
  }

  std::vector<int64_t> batches;  ///< those that were computed
  std::function<void(int64_t batch)> at_batch;

 private:
  std::vector<int64_t> spiking_;
};

std::vector<int64_t> numbers_in(int64_t first, int64_t end) {
  std::vector<int64_t> numbers;
  for (; first < end; ++first) numbers.push_back(first);
  return numbers;
}

class LossSpikeRun : public testing::Test {
 protected:
  /// Trains 14 steps with spikes at `spiking`; `more` continues the config. Returns the batches
  /// that were computed.
  std::vector<int64_t> run(const std::string& action, std::vector<int64_t> spiking,
                           const std::string& more = "", const StopRequest& stop = {}) {
    const config::RunConfig config =
        tiny_run(folder_, "train { steps: 14 loss_spike { action: " + action +
                              " z: 8 window: 4 limit: 2 } } " + more);
    auto task = std::make_unique<SpikingTask>(build_task(config), std::move(spiking));
    SpikingTask& spikes = *task;
    spikes.at_batch = at_batch_;
    TrainingRun run(config,
                    RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue),
                    "{}", std::move(task));
    std::FILE* const log = std::fopen((folder_ / "log").c_str(), "w");
    run.run({.terminal = log, .stop = stop});
    std::fclose(log);
    return spikes.batches;
  }
  std::string metrics() const { return file_content(folder_ / "run/metrics.jsonl"); }
  std::string log() const { return file_content(folder_ / "log"); }
  CheckpointManifest newest() const {
    return verify_checkpoint(list_checkpoints(folder_ / "run/checkpoints").back().path);
  }

  TemporaryDirectory folder_;
  std::function<void(int64_t batch)> at_batch_;
};

TEST_F(LossSpikeRun, SkipLeavesOneUpdateOut) {
  EXPECT_EQ(run("SKIP", {6}), numbers_in(0, 14));
  EXPECT_EQ(newest().optimizer_steps, 13);
  EXPECT_TRUE(says(metrics(), R"("skipped":true,"spike":"loss )"));
  EXPECT_TRUE(says(log(), "above the mean"));
  EXPECT_TRUE(says(log(), "and is left out. Its samples: lockstep data of-step"));
  EXPECT_EQ(newest().loss_spike->losses.size(), 4u);
}

TEST_F(LossSpikeRun, TheSampleWithTheLargestLossIsNamed) {
  run("NOTE", {6});
  EXPECT_TRUE(says(log(), "steps; sample 1 (")) << log();
  EXPECT_TRUE(says(log(), "text.txt, byte "));
  EXPECT_TRUE(says(metrics(), " % of the loss"));
}

TEST_F(LossSpikeRun, NoteTrainsOnIt) {
  EXPECT_EQ(run("NOTE", {6}), numbers_in(0, 14));
  EXPECT_EQ(newest().optimizer_steps, 14);
  EXPECT_TRUE(says(metrics(), R"("spike":"loss )"));
  EXPECT_EQ(metrics().find("skipped"), std::string::npos);
}

TEST_F(LossSpikeRun, KeepLooksForNone) {
  run("KEEP", {6});
  EXPECT_EQ(newest().optimizer_steps, 14);
  EXPECT_EQ(metrics().find("spike"), std::string::npos);
  EXPECT_FALSE(newest().loss_spike);
}

TEST_F(LossSpikeRun, RollbackLeavesTheBatchesSinceTheCheckpointOut) {
  EXPECT_EQ(run("ROLLBACK", {6}, "checkpoint { every_steps: 5 }"), numbers_in(0, 16));
  EXPECT_EQ(read_metrics(folder_ / "run").size(), 14u);
  EXPECT_EQ(newest().optimizer_steps, 14);
  EXPECT_TRUE(says(log(), "Going back to step 5, leaving out the batches since"));
}

TEST_F(LossSpikeRun, RollbackWithoutAnyCheckpointLeftIsToldAndEndsTheRun) {
  at_batch_ = [&](int64_t batch) {
    if (batch == 6) fs::remove_all(folder_ / "run/checkpoints");
  };
  EXPECT_TRUE(says(
      message_of<CheckpointError>([&] { run("ROLLBACK", {6}, "checkpoint { every_steps: 5 }"); }),
      "holds no checkpoint to go back to"));
}

TEST_F(LossSpikeRun, RollbackBeforeTheFirstCheckpointGoesToTheStart) {
  EXPECT_EQ(run("ROLLBACK", {5}, "checkpoint { every_steps: 0 }"), numbers_in(0, 20));
}

TEST_F(LossSpikeRun, WhatStaysHighIsALevelAndNoSpike) {
  EXPECT_EQ(run("SKIP", numbers_in(6, 14)), numbers_in(0, 14));
  EXPECT_EQ(newest().optimizer_steps, 12);
  EXPECT_EQ(newest().loss_spike->losses.size(), 4u);
}

/// A run in which many steps are spikes, since little counts as one.
std::string with_spikes(const std::string& action, int steps) {
  return "train { steps: " + std::to_string(steps) +
         " batch_size: 8 micro_batch_size: 1 leaves: 8 loss_spike { action: " + action +
         " z: 0.5 window: 3 } } reproducibility: BITWISE checkpoint { every_steps: 3 } ";
}

/// The numbers of all steps, which of them were spikes, and the bytes of the weights.
std::string left_by(const fs::path& run) {
  std::string text;
  for (const MetricsRecord& record : read_metrics(run)) {
    text += fmt::format("{} {} {}\n", record.step, *record.loss, *record.grad_norm);
  }
  const std::string metrics = file_content(run / "metrics.jsonl");
  for (size_t at = 0; (at = metrics.find("\"spike\":", at)) != std::string::npos; ++at) {
    std::string spike = metrics.substr(at, metrics.find("\",", at) - at);
    const std::string folder = run.parent_path().string();
    for (size_t path; (path = spike.find(folder)) != std::string::npos;) {
      spike.erase(path, folder.size());
    }
    text += spike + "\n";
  }
  return text + file_content(run / "model.safetensors");
}

TEST(LossSpikes, RanksStrategiesAndDevicesDecideAlike) {
  for (const std::string action : {"SKIP", "ROLLBACK", "NOTE"}) {
    const TemporaryDirectory folder;
    rethrow_first(run_on_ranks(tiny_run(folder, with_spikes(action, 12)), folder, 1));
    const std::string alone = left_by(folder / "run");
    if (action != "ROLLBACK") {
      EXPECT_TRUE(says(alone.substr(0, 4096), "above the mean"));
    }
    for (const auto& [more, ranks] :
         {std::pair("", 2), std::pair("parallel { strategy: FULL_SHARD }", 3),
          std::pair("device: \"host:0\"", 1), std::pair("device: \"host:0\"", 2)}) {
      const TemporaryDirectory other;
      rethrow_first(run_on_ranks(tiny_run(other, with_spikes(action, 12) + more), other, ranks));
      EXPECT_TRUE(left_by(other / "run") == alone) << action << " " << more << " " << ranks;
    }
  }
}

TEST(LossSpikes, AResumedRunDecidesAsAWholeOne) {
  for (const std::string action : {"SKIP", "NOTE"}) {
    const TemporaryDirectory whole, parts;
    rethrow_first(run_on_ranks(tiny_run(whole, with_spikes(action, 16)), whole, 1));
    for (int stops = 0; stops < 3; ++stops) {
      int asked = 0;
      const StopRequest stop = [&] { return ++asked > 4; };
      const auto stopped =
          run_on_ranks(tiny_run(parts, with_spikes(action, 16)), parts, stops + 1, stop);
      EXPECT_TRUE(stopped[0] != nullptr);
    }
    rethrow_first(run_on_ranks(tiny_run(parts, with_spikes(action, 16)), parts, 2));
    EXPECT_TRUE(left_by(parts / "run") == left_by(whole / "run")) << action;
  }
}

}  // namespace
}  // namespace lockstep::train
