// optimizer.lion and optimizer.adafactor in runs.

#include <gtest/gtest.h>

#include <string>

#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

const char* const kRules[] = {"optimizer { lion {} learning_rate: 1e-3 } ",
                              "optimizer { adafactor {} learning_rate: 1e-2 } "};

TEST(LionAndAdafactor, TheLossFalls) {
  const TemporaryDirectory folder;
  for (const char* rule : {"lion {} learning_rate: 5e-3", "adafactor {} learning_rate: 0.1"}) {
    const Trace run = trace(
        tiny_run(folder, std::string("train { steps: 100 } optimizer { ") + rule + " }"), 100);
    EXPECT_LT(run.losses.back(), 0.7 * run.losses.front()) << rule;
  }
}

TEST(LionAndAdafactor, NumberOfRanksChangesNoBitWithBitwise) {
  const TemporaryDirectory folder;
  for (const char* rule : kRules) {
    for (const char* more : {"", "precision: BF16_MIXED ", "optimizer { clip_grad_norm: 0.1 } "}) {
      const std::string base = std::string(
                                   "reproducibility: BITWISE train { batch_size: 8 "
                                   "micro_batch_size: 1 } ") +
                               rule + more;
      const Trace one = trace(layered_run(folder, base), 4);
      for (const int ranks : {2, 4}) {
        for (const Trace& each : traces(layered_run(folder, base), ranks, 4)) {
          EXPECT_EQ(each, one) << base << ranks;
        }
      }
    }
  }
}

TEST(Lion, StrategiesChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  const std::string base =
      std::string("reproducibility: BITWISE train { batch_size: 8 micro_batch_size: 1 } ") +
      kRules[0];
  const Trace one = trace(layered_run(folder, base), 4);
  for (const char* strategy : {"FULL_SHARD", "SHARD_GRAD_OP", "SHARD_OPTIMIZER"}) {
    for (const Trace& each :
         traces(layered_run(folder, base + "parallel { strategy: " + strategy + " }"), 4, 4)) {
      EXPECT_EQ(each, one) << strategy;
    }
  }
}

TEST(LionAndAdafactor, AStepThatIsSkippedChangesNothing) {
  const TemporaryDirectory folder;
  for (const char* rule : kRules) {
    Trainer trainer = Trainer::create(layered_run(folder, rule));
    trainer.step();
    const std::string before = state_bytes(trainer);
    std::vector<Tensor> gradients;
    for (const Tensor& each : trainer.task().model().parameters()) {
      gradients.push_back(full(each.sizes(), std::numeric_limits<float>::quiet_NaN()));
    }
    trainer.optimizer().step(gradients, 1e-3, 1, {.found_inf = full({}, 1, DType::kF32)});
    EXPECT_EQ(state_bytes(trainer), before) << rule;
  }
}

TEST(LionAndAdafactor, UpdatesDuringBackwardHaveTheSameBits) {
  const TemporaryDirectory folder;
  for (const char* rule : kRules) {
    const std::string base = std::string(rule) + "optimizer { clip_grad_norm: 0 } ";
    EXPECT_EQ(
        trace(layered_run(folder, base + "optimizer { optimizer_in_backward: true }"), 4).weights,
        trace(layered_run(folder, base), 4).weights)
        << rule;
  }
}

TEST(LionAndAdafactor, AStoppedRunGoesOnWithTheSameBits) {
  for (const char* rule : kRules) {
    expect_exact_resume(std::string(rule) + "train { steps: 8 }", 2);
  }
}

}  // namespace
}  // namespace lockstep::train
