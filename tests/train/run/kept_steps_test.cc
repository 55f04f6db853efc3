// What a run that an error ends keeps of the steps since its newest checkpoint.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"
#include "train/run/checkpoint_state.h"
#include "train/run/training_run.h"

namespace lockstep::train {
namespace {

/// Cannot read one batch.
class TornTask final : public ForwardingTask {
 public:
  TornTask(std::unique_ptr<Task> task, int64_t torn)
      : ForwardingTask(std::move(task)), torn_(torn) {}

  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (batch == torn_) throw DataError("[data] torn");
    return loss;
  }

 private:
  int64_t torn_;
};

class KeptSteps : public testing::Test {
 protected:
  /// Trains 12 steps with `more`, of which batch `torn` cannot be read; -1: all can. Expects the
  /// error, and returns what the run printed.
  std::string run(const std::string& name, const std::string& more, int64_t torn) const {
    const config::RunConfig config =
        layered_run(folder_, "train { steps: 12 eval_every: 0 }" + more);
    std::FILE* const terminal = std::fopen((folder_ / "terminal").c_str(), "w");
    {
      TrainingRun training(
          config, RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kContinue), "{}",
          std::make_unique<TornTask>(build_task(config), torn));
      if (torn < 0) {
        training.run({.terminal = terminal});
      } else {
        expect_error<DataError>([&] { training.run({.terminal = terminal}); }, "[data] torn");
      }
    }
    std::fclose(terminal);
    return file_content(folder_ / "terminal");
  }
  std::vector<CheckpointEntry> checkpoints(const std::string& name) const {
    return list_checkpoints(folder_ / name / "checkpoints");
  }
  std::string weights(const std::string& name) const {
    return file_content(folder_ / name / "model.safetensors");
  }

  TemporaryDirectory folder_;
};

TEST_F(KeptSteps, AreThoseBeforeTheStepThatFailed) {
  for (const char* more : {"", "train { micro_batch_size: 2 } precision: BF16_MIXED",
                           "train { weight_average { decay: 0.9 } }"}) {
    run("whole", more, -1);
    const std::string expected = weights("whole");
    std::filesystem::remove_all(folder_ / "whole");

    const std::string told = run("torn", more, 7);
    EXPECT_NE(told.find("saved the state after step 7, from which the run can go on"), told.npos)
        << told;
    ASSERT_EQ(checkpoints("torn").size(), 1U) << more;
    EXPECT_EQ(checkpoints("torn")[0].step, 7) << more;
    EXPECT_TRUE(checkpoints("torn")[0].complete) << more;
    EXPECT_TRUE(checkpoints("torn")[0].after_error) << more;
    run("torn", more, -1);
    EXPECT_TRUE(weights("torn") == expected) << more;
    std::filesystem::remove_all(folder_ / "torn");
  }
}

TEST_F(KeptSteps, AreNoneOfARunThatHasJustSavedOrMadeNoStep) {
  for (const int64_t torn : {0, 8}) {
    const std::string told = run("run", "checkpoint { every_steps: 4 }", torn);
    EXPECT_EQ(told.find("saved the state"), told.npos) << told;
    EXPECT_EQ(checkpoints("run").size(), torn == 0 ? 0U : 2U);
    for (const CheckpointEntry& each : checkpoints("run")) EXPECT_FALSE(each.after_error);
  }
}

TEST_F(KeptSteps, AreNoneWhereAStepChangesWeightsAsItRuns) {
  const std::string told = run("run",
                               "optimizer { optimizer_in_backward: true clip_grad_norm: 0 } "
                               "checkpoint { every_steps: 4 }",
                               6);
  EXPECT_EQ(told.find("saved the state"), told.npos) << told;
  ASSERT_EQ(checkpoints("run").size(), 1U);
  EXPECT_EQ(checkpoints("run")[0].step, 4);
}

TEST_F(KeptSteps, OfAnErrorWhoseStateCannotBeSavedAreToldAsLost) {
  const config::RunConfig config = tiny_run(folder_, "train { steps: 12 }");
  std::FILE* const terminal = std::fopen((folder_ / "terminal").c_str(), "w");
  {
    TrainingRun training(
        config, RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kContinue), "{}",
        std::make_unique<TornTask>(build_task(config), 7));
    put_file(folder_ / "run/checkpoints", "in the way");
    expect_error<DataError>([&] { training.run({.terminal = terminal}); }, "[data] torn");
  }
  std::fclose(terminal);
  const std::string told = file_content(folder_ / "terminal");
  EXPECT_NE(told.find("the state after step 7 could not be saved: "), told.npos) << told;
}

TEST_F(KeptSteps, AreAllThatTheLeaderHasWhereAnotherRankIsLost) {
  for (const char* more :
       {"", "checkpoint { files: SHARDS }", "checkpoint { asynchronous: true }"}) {
    const TemporaryDirectory straight, torn;
    const std::string options =
        std::string("train { steps: 8 micro_batch_size: 1 } reproducibility: BITWISE ") + more;
    rethrow_first(run_on_ranks(layered_run(straight, options), straight, 2));
    int asked = 0;
    const auto errors = run_on_ranks(layered_run(torn, options), torn, 2, [&] {
      if (++asked == 5) throw DataError("lost");
      return false;
    });
    ASSERT_TRUE(errors[0] != nullptr) << more;
    expect_error<PeerLostError>([&] { std::rethrow_exception(errors[0]); }, "lost");
    const auto found = list_checkpoints(torn / "run/checkpoints");
    ASSERT_EQ(found.size(), 1U) << more;
    EXPECT_EQ(found[0].step, 4) << more;
    EXPECT_TRUE(found[0].complete) << more;
    rethrow_first(run_on_ranks(layered_run(torn, options), torn, 2));
    EXPECT_TRUE(weights_of(torn) == weights_of(straight)) << more;
  }
}

TEST_F(KeptSteps, AreNoneOfStateThatIsSpreadOverTheRanks) {
  for (const char* strategy : {"SHARD_OPTIMIZER", "FULL_SHARD"}) {
    const TemporaryDirectory folder;
    int asked = 0;
    const auto errors = run_on_ranks(
        layered_run(folder, fmt::format("train {{ steps: 8 micro_batch_size: 2 }} parallel {{ "
                                        "strategy: {} }}",
                                        strategy)),
        folder, 2, [&] {
          if (++asked == 5) throw DataError("lost");
          return false;
        });
    EXPECT_TRUE(errors[0] != nullptr) << strategy;
    EXPECT_TRUE(list_checkpoints(folder / "run/checkpoints").empty()) << strategy;
  }
}

}  // namespace
}  // namespace lockstep::train
