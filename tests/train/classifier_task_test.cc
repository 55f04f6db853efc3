#include "train/classifier_task.h"

#include <gtest/gtest.h>

#include <cmath>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "data/table_data.h"
#include "nn/models/mlp.h"
#include "tests/data/table_file.h"
#include "tests/train/table_run.h"
#include "tests/train/tiny_run.h"
#include "train/run/checkpoint.h"

namespace lockstep::train {
namespace {

constexpr const char* kClassifierMlp =
    "model { mlp { inputs: 16 classes: 4 hidden_widths: [8] } } ";
constexpr const char* kClassifierResnet =
    "model { resnet { channels: 1 height: 4 width: 4 classes: 4 base_width: 4 blocks: [1, 1] } } ";

/// A config for two hundred samples of 16 numbers in 4 classes.
config::RunConfig classifier_run(const TemporaryDirectory& folder, const std::string& more) {
  const std::string base = table_data(folder) + "optimizer { learning_rate: 1e-2 }";
  config::RunConfig config;
  config::Origins origins;
  config::merge_text(config, origins, base, "base.txtpb");
  config::merge_text(config, origins, more, "more.txtpb");
  config::resolve(config, origins);
  return config;
}

TEST(ClassifierTask, BothModelsLearnToTellClassesApart) {
  const TemporaryDirectory folder;
  for (const std::string model : {kClassifierMlp, kClassifierResnet}) {
    Trainer trainer =
        Trainer::create(classifier_run(folder, model + "train { steps: 60 batch_size: 16 }"));
    const Evaluation before = *trainer.task().evaluate({});
    for (int i = 0; i < 60; ++i) trainer.step();
    const Evaluation after = *trainer.task().evaluate({});
    EXPECT_EQ(after.targets, 50);
    EXPECT_LT(after.loss, 0.5 * before.loss);
    EXPECT_GT(after.accuracy, 0.95);
    EXPECT_TRUE(std::isnan(after.bits_per_byte()));
  }
}

TEST(ClassifierTask, APartOfTheHeldOutSamplesIsCountedAsSuch) {
  const TemporaryDirectory folder;
  Trainer trainer = Trainer::create(
      classifier_run(folder, std::string(kClassifierMlp) + "train { steps: 1 batch_size: 16 }"));
  EXPECT_EQ(trainer.task().evaluate({.max_batches = 2})->targets, 32);
  EXPECT_FALSE(trainer.task().evaluate({.stop = [] { return true; }}).has_value());
}

TEST(ClassifierTask, BatchNormsStatisticsAreSavedAndGoneOnWith) {
  const TemporaryDirectory folder;
  const config::RunConfig config =
      classifier_run(folder, std::string(kClassifierResnet) +
                                 "train { steps: 9 batch_size: 16 micro_batch_size: 4 leaves: 2 }");
  Trainer whole = Trainer::create(config);
  for (int i = 0; i < 3; ++i) whole.step();
  const auto path = save_checkpoint(folder / "c", whole, config::to_text(config));
  Trainer resumed = Trainer::create(config);
  restore(resumed, path, verify_checkpoint(path));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(resumed.step().loss, whole.step().loss);
  EXPECT_EQ(resumed.task().evaluate({})->loss, whole.task().evaluate({})->loss);
  EXPECT_EQ(state_bytes(resumed), state_bytes(whole));
}

TEST(ClassifierTask, KernelThreadsDoNotChangeBits) {
  const TemporaryDirectory folder;
  const auto state = [&](const char* threads) {
    Trainer trainer = Trainer::create(
        classifier_run(folder, fmt::format("{} threads: {} train {{ steps: 9 batch_size: 16 }}",
                                           kClassifierResnet, threads)));
    for (int i = 0; i < 4; ++i) trainer.step();
    return state_bytes(trainer);
  };
  const std::string one = state("1");
  EXPECT_EQ(one, state("2"));
  EXPECT_EQ(one, state("4"));
}

TEST(ClassifierTask, RandomSamplesServeForTimingAndHoldNothingOut) {
  config::RunConfig config = config::load_text(
      std::string(kClassifierMlp) + "data { random {} } train { steps: 1 batch_size: 8 }");
  Trainer trainer = Trainer::create(config);
  EXPECT_TRUE(std::isfinite(trainer.step().loss));
  EXPECT_FALSE(trainer.task().holds_out());
}

TEST(ClassifierTask, DataOfAnotherShapeIsRefused) {
  const TemporaryDirectory folder;
  put_table(folder / "t", 20, 6, 3);
  const auto task = [&](int64_t inputs, int64_t classes) {
    ClassifierTask(std::make_unique<nn::Mlp>(nn::MlpOptions{.inputs = inputs, .classes = classes}),
                   std::make_unique<TableData>(folder / "t", TableDataOptions{}), 4);
  };
  EXPECT_NO_THROW(task(6, 3));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { task(5, 3); }), "a sample has 6 numbers"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] { task(6, 2); }), "there are 3 classes"));
}

}  // namespace
}  // namespace lockstep::train
