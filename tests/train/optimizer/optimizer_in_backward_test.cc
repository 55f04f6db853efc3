// Optimizer updates during backward, compared with updates after it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/rank_runs.h"
#include "tests/train/table_run.h"

namespace lockstep::train {
namespace {

/// A dozen buckets, so that some are reduced while others still collect gradients.
constexpr const char* kSmallBuckets = "parallel { bucket_mib: 0.004 first_bucket_mib: 0.002 } ";

config::RunConfig run(const TemporaryDirectory& folder, const std::string& more, bool in_backward,
                      const std::string& optimizer = "") {
  const bool divides = more.find("parallel") != std::string::npos;
  return tiny_run(folder,
                  (divides ? "" : kSmallBuckets) + more +
                      fmt::format(" optimizer {{ clip_grad_norm: 0 optimizer_in_backward: {} {} }}",
                                  in_backward, optimizer));
}

void expect_same_bits(const TemporaryDirectory& folder, const std::string& more,
                      std::initializer_list<int> ranks, const std::string& optimizer = "") {
  for (const int size : ranks) {
    EXPECT_TRUE(traces(run(folder, more, true, optimizer), size, 4) ==
                traces(run(folder, more, false, optimizer), size, 4))
        << more << optimizer << ", ranks: " << size;
  }
}

/// Makes a parameter's gradient NaN in the fourth batch.
class SpoiledTask final : public ForwardingTask {
 public:
  using ForwardingTask::ForwardingTask;
  SummedLoss forward(int64_t batch, int64_t first, int64_t count) override {
    SummedLoss loss = ForwardingTask::forward(batch, first, count);
    if (batch == 3) loss.sum = loss.sum + sum(sqrt(model().parameters()[1] * 0));
    return loss;
  }
};

TEST(OptimizerInBackward, HasTheBitsOfUpdatesAfterIt) {
  const TemporaryDirectory folder;
  // In GPT-2, the embedding and the head share one weight.
  expect_same_bits(folder, "train { batch_size: 12 }", {1, 2, 3});
  expect_same_bits(folder, "", {1, 2}, "sgd { momentum: 0.9 nesterov: true }");
  expect_same_bits(folder, "", {2}, "sgd { momentum: 0 }");
  expect_same_bits(folder, "train { micro_batch_size: 1 leaves: 8 }", {1, 2, 3});
  expect_same_bits(folder, "precision: BF16_MIXED", {1, 2});
}

TEST(OptimizerInBackward, HasThemOnAnAsynchronousDevice) {
  const TemporaryDirectory folder;
  expect_same_bits(folder, "device: \"host:0\"", {1, 2});
}

TEST(OptimizerInBackward, HasThemWhereTheModelIsSharded) {
  const TemporaryDirectory folder;
  for (const char* strategy :
       {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER", "HYBRID_SHARD shard_size: 2"}) {
    const std::string parallel = std::string("parallel { strategy: ") + strategy + " } ";
    for (const char* more :
         {"", "train { batch_size: 12 micro_batch_size: 1 leaves: 4 }", "precision: BF16_MIXED"}) {
      expect_same_bits(folder, parallel + more, {2, 4});
    }
    expect_same_bits(folder, parallel + "device: \"host:0\"", {2});
  }
}

TEST(OptimizerInBackward, ANonFiniteStepOfAShardedModelIsNamedByTheRankThatHasIt) {
  const TemporaryDirectory folder;
  const config::RunConfig config = run(folder, "parallel { strategy: FULL_SHARD }", true);
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    Trainer trainer = Trainer::create(
        config,
        std::make_unique<SpoiledTask>(build_task(config, share_of_step(config.train(), &group))),
        &group);
    for (int step = 0; step < 3; ++step) trainer.step();
    EXPECT_THAT(trainer.step().non_finite, testing::HasSubstr("gradient of wpe.weight has"));
  }));
}

TEST(OptimizerInBackward, HasThemForOtherModels) {
  const TemporaryDirectory folder;
  expect_same_bits(
      folder, "model { llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 16 } }",
      {1, 2});
  expect_same_bits(folder, tiny_resnet(folder), {1, 2});
}

TEST(OptimizerInBackward, AStepThatIsNotFiniteEndsTheRunWithoutSavingWhatItLeft) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      run(folder, "train { steps: 6 } checkpoint { every_steps: 2 }", true);
  TrainingRun training(config,
                       RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue),
                       "{}", std::make_unique<SpoiledTask>(build_task(config)));
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  expect_error<NonFiniteError>([&] { training.run({.terminal = nowhere}); }, "step 4",
                               "gradient of wpe.weight has 256 NaN", "optimizer_in_backward");
  std::fclose(nowhere);
  const auto found = list_checkpoints(folder / "run/checkpoints");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(verify_checkpoint(found[0].path).position, (Position{2, 2}));
}

TEST(OptimizerInBackward, ResumesFromACheckpointWithTheSameBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config = run(folder, "", true);
  const Trace whole = trace(config, 6);
  Trainer first = Trainer::create(config);
  trace(first, 3);
  save_checkpoint(folder / "checkpoints", first, config::to_text(config));
  Trainer second = Trainer::create(config);
  const std::filesystem::path path = list_checkpoints(folder / "checkpoints").back().path;
  restore(second, path, verify_checkpoint(path));
  EXPECT_TRUE(trace(second, 3).weights == whole.weights);
}

}  // namespace
}  // namespace lockstep::train
