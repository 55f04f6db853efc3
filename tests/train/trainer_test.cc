#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/tensor/allocator.h"
#include "tests/train/forwarding_task.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"

namespace lockstep::train {
namespace {

TEST(Trainer, TwoRunsOfOneConfigGiveTheSameBits) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  EXPECT_EQ(trace(config, 5), trace(config, 5));
}

TEST(Trainer, AnotherSeedGivesOtherLosses) {
  const TemporaryDirectory folder;
  EXPECT_NE(trace(tiny_run(folder), 2).losses, trace(tiny_run(folder, "seed: 1"), 2).losses);
}

TEST(Trainer, KernelThreadsDoNotChangeBits) {
  const TemporaryDirectory folder;
  const Trace one = trace(tiny_run(folder, "threads: 1"), 4);
  EXPECT_EQ(one, trace(tiny_run(folder, "threads: 2"), 4));
  EXPECT_EQ(one, trace(tiny_run(folder, "threads: 4"), 4));
}

TEST(Trainer, TheLossFalls) {
  const TemporaryDirectory folder;
  const Trace run = trace(tiny_run(folder, "train { steps: 100 }"), 100);
  EXPECT_LT(run.losses.back(), 0.6 * run.losses.front());
}

TEST(Trainer, ARankAloneTellsNothingOfCommunication) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder));
  EXPECT_EQ(trainer.step().exposed_comm_ms, -1);
  EXPECT_TRUE(trainer.overlap().steps().empty());
}

TEST(Trainer, MicroBatchesChangeRoundingOnly) {
  const TemporaryDirectory folder;
  const std::string plain = "model { gpt2 { dropout: 0 } }";
  const Trace whole = trace(tiny_run(folder, plain), 3);
  const Trace cut = trace(tiny_run(folder, plain + "train { micro_batch_size: 2 }"), 3);
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(whole.losses[i], cut.losses[i], 2e-5);
    EXPECT_NEAR(whole.norms[i], cut.norms[i], 1e-3 * whole.norms[i]);
  }
}

TEST(Trainer, AStepCountsTheTokensOfItsBatch) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder, "train { micro_batch_size: 2 }");
  const int64_t tokens = config.train().batch_size() * config.model().gpt2().context_length();
  Trainer trainer = Trainer::create(config);
  EXPECT_EQ(trainer.step().tokens, tokens);
  EXPECT_EQ(trainer.step().tokens, tokens);
}

TEST(Trainer, LeavesChangeRoundingOnly) {
  const TemporaryDirectory folder;
  const std::string cut = "train { micro_batch_size: 1 leaves: ";
  const Trace one = trace(tiny_run(folder, cut + "1 }"), 3);
  for (const char* leaves : {"2", "4", "8"}) {
    const Trace many = trace(tiny_run(folder, cut + leaves + " }"), 3);
    for (size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(one.losses[i], many.losses[i], 2e-5);
    EXPECT_EQ(many, trace(tiny_run(folder, cut + leaves + " }"), 3));
  }
}

TEST(Trainer, SteadyStepsAskTheSystemForNoMemory) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder));
  for (int i = 0; i < 3; ++i) trainer.step();
  const MemoryStats before = allocator(kCPU).stats();
  for (int i = 0; i < 5; ++i) trainer.step();
  const MemoryStats after = allocator(kCPU).stats();
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.system_calls, before.system_calls);
  EXPECT_EQ(after.allocated, before.allocated);
}

TEST(Trainer, EvaluationSeesEveryHeldOutByteOnce) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder));
  const Evaluation all = *trainer.task().evaluate({});
  EXPECT_EQ(all.targets, 500);
  EXPECT_EQ(all.loss, trainer.task().evaluate({})->loss);
  EXPECT_NEAR(all.bits_per_byte(), 8, 0.5);  // untrained: a uniform guess of one byte
}

TEST(Trainer, AnEvaluationThatIsAskedToStopGivesNothing) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(tiny_run(folder));
  int asked = 0;
  EXPECT_FALSE(trainer.task().evaluate({.stop = [&] { return ++asked == 2; }}).has_value());
  EXPECT_EQ(asked, 2);
}

TEST(Trainer, AStepThatIsNotFiniteUpdatesNothingAndSaysSo) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(
      tiny_run(folder, "optimizer { learning_rate: 1000 clip_grad_norm: 0 sgd { } }"));
  StepResult step;
  std::string before;
  for (int i = 0; i < 200 && step.outcome.finite; ++i) {
    before = state_bytes(trainer);
    step = trainer.step();
  }
  ASSERT_FALSE(step.outcome.finite);
  EXPECT_EQ(state_bytes(trainer), before);
  EXPECT_EQ(trainer.optimizer().steps(), step.step);
  EXPECT_EQ(trainer.position(), (Position{step.step + 1, step.step + 1}));
}

/// All parameters of the model, one after the other.
std::vector<double> weights_of(Trainer& trainer) {
  std::vector<double> weights;
  for (const Tensor& parameter : trainer.task().model().parameters()) {
    const auto* const values = parameter.data<float>();
    weights.insert(weights.end(), values, values + parameter.numel());
  }
  return weights;
}

TEST(Trainer, ClippingScalesTheWholeUpdateDownToTheLimit) {
  const TemporaryDirectory folder;
  struct Update {
    std::vector<double> change;
    StepResult step;
  };
  // The first update of plain gradient descent.
  const auto update = [&](const std::string& limit) {
    Trainer trainer = Trainer::create(
        tiny_run(folder,
                 "optimizer { learning_rate: 0.5 weight_decay: 0 sgd { momentum: 0 } "
                 "clip_grad_norm: " +
                     limit + " } schedule { warmup_steps: 0 }"));
    std::vector<double> change = weights_of(trainer);
    const StepResult step = trainer.step();
    const std::vector<double> after = weights_of(trainer);
    for (size_t i = 0; i < change.size(); ++i) change[i] = after[i] - change[i];
    return Update{std::move(change), step};
  };
  const auto length = [](const Update& update) {
    double squares = 0;
    for (const double each : update.change) squares += each * each;
    return std::sqrt(squares);
  };
  const Update whole = update("0");
  const double norm = whole.step.grad_norm, rate = whole.step.learning_rate;
  EXPECT_NEAR(length(whole), rate * norm, 1e-3 * rate * norm);
  const Update clipped = update("0.01");
  EXPECT_EQ(clipped.step.grad_norm, norm) << "the norm before clipping is reported";
  EXPECT_NEAR(length(clipped), rate * 0.01, 1e-3 * rate * 0.01);
  for (size_t i = 0; i < whole.change.size(); ++i) {
    ASSERT_NEAR(clipped.change[i], whole.change[i] * 0.01 / norm, 1e-6) << i;
  }
  EXPECT_EQ(update("1000").change, whole.change) << "a limit above the norm changes no bit";
}

TEST(Trainer, ABatchThatIsLeftOutMovesTheDataAndNotTheStep) {
  const TemporaryDirectory folder;
  Trainer plain = Trainer::create(tiny_run(folder));
  Trainer ahead = Trainer::create(tiny_run(folder));
  ahead.set_position({.step = 0, .batch = 1});
  const double first = plain.step().loss;
  EXPECT_NE(ahead.step().loss, first);
  EXPECT_EQ(ahead.position(), (Position{1, 2}));
}

TEST(Trainer, OneBatchCanBeOverfit) {
  const TemporaryDirectory folder;
  const std::string once =
      "model { gpt2 { dropout: 0 } } optimizer { learning_rate: 1e-2 }"
      "train { overfit_one_batch: true steps: 150 }";
  const Trace run = trace(tiny_run(folder, once), 150);
  EXPECT_LT(run.losses.back(), 0.05 * run.losses.front());
}

TEST(Trainer, LlamaTrainsWithSgd) {
  const TemporaryDirectory folder;
  const std::string llama =
      "model { llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 16 } }"
      "optimizer { sgd { momentum: 0.9 nesterov: true } learning_rate: 0.05 }";
  const Trace run = trace(tiny_run(folder, llama), 20);
  EXPECT_LT(run.losses.back(), run.losses.front());
}

/// Counts how often its model is asked for.
class AskedTask final : public ForwardingTask {
 public:
  AskedTask(std::unique_ptr<Task> task, int& asked)
      : ForwardingTask(std::move(task)), asked_(asked) {}
  nn::Module& model() override {
    ++asked_;
    return ForwardingTask::model();
  }

 private:
  int& asked_;
};

TEST(Trainer, ListsItsStateOnceForAllTensorsThatAreCollected) {
  const TemporaryDirectory folder;
  const config::RunConfig config = tiny_run(folder);
  int asked = 0;
  Trainer trainer = Trainer::create(config, std::make_unique<AskedTask>(build_task(config), asked));
  trainer.step();
  const std::vector<nn::StoredParameter> weights = trainer.task().model().stored_parameters();
  const std::vector<nn::StoredParameter> state = trainer.optimizer_state_shapes();
  ASSERT_GT(weights.size(), 10u);
  asked = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(trainer.collect_state(i).is_same(weights[i].tensor));
  }
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(trainer.collect_state(weights.size() + i).is_same(state[i].tensor));
  }
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace lockstep::train
