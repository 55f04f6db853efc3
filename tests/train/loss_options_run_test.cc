// train.loss in runs.

#include <gtest/gtest.h>

#include <string>

#include "tests/configs/examples.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

const std::string kLoss = "train { loss { label_smoothing: 0.1 z_loss: 1e-2 } } ";

TEST(LossOptions, ChangeTrainingAndNotEvaluations) {
  const TemporaryDirectory folder;
  Trainer plain = Trainer::create(tiny_run(folder)),
          with = Trainer::create(layered_run(folder, kLoss));
  EXPECT_EQ(with.evaluate(0)->loss, plain.evaluate(0)->loss);
  EXPECT_GT(with.step().loss, plain.step().loss);
  const config::RunConfig none =
      layered_run(folder, "train { loss { label_smoothing: 0 z_loss: 0 } }");
  EXPECT_EQ(trace(none, 3), trace(tiny_run(folder), 3));
}

TEST(LossOptions, NumberOfRanksAndStrategyChangeNoBitWithBitwise) {
  const TemporaryDirectory folder;
  // The second has chunks of logits.
  for (const char* model :
       {"", "model { gpt2 { vocab_size: 16384 context_length: 16 width: 4 layers: 1 } } "}) {
    const std::string base =
        "reproducibility: BITWISE train { batch_size: 4 micro_batch_size: 1 "
        "leaves: 4 } " +
        kLoss + model;
    const Trace one = trace(layered_run(folder, base), 2);
    for (const char* strategy : {"DDP", "FULL_SHARD"}) {
      for (const Trace& each :
           traces(layered_run(folder, base + "parallel { strategy: " + strategy + " }"), 4, 2)) {
        EXPECT_EQ(each, one) << strategy << model;
      }
    }
  }
}

TEST(LossOptions, AreRefusedForClassifiers) {
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, config::kSmallestClassifier, "a");
  config::set_value(config, origins, "train.loss.z_loss=0.1");
  EXPECT_TRUE(says(message_of<config::SourceError>([&] { config::resolve(config, origins); }),
                   "train.loss.z_loss is 0.1: expected 0 for a model that is a classifier"));
}

}  // namespace
}  // namespace lockstep::train
