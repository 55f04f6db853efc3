#include "train/run/planned_work.h"

#include <gtest/gtest.h>

#include <string>

#include "configs/run.pb.h"
#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

dist::StepWork work_of(const std::string& more = "", int64_t ranks = 1,
                       const std::string& model = "") {
  const TemporaryDirectory folder;
  return count_work(
      tiny_run(folder, "model { gpt2 { width: 64 dropout: 0 } " + model + " } " + more), ranks);
}

TEST(CountWork, CountsTheProductsOfEveryBlockAndOfTheClassifier) {
  const dist::StepWork work = work_of();
  ASSERT_EQ(work.units.size(), 2U);
  // A block's matrices have 12 width^2 elements; attention adds products of its own.
  const double tokens = 8 * 16, block = 2 * tokens * 12 * 64 * 64;
  for (const dist::UnitWork& unit : work.units) {
    EXPECT_GE(unit.forward, block);
    EXPECT_LT(unit.forward, 1.1 * block);
    EXPECT_NEAR(unit.backward / unit.forward, 2, 0.3);
  }
  EXPECT_EQ(work.units[0].forward, work.units[1].forward);
  const double classifier = 2 * tokens * 256 * 64;
  EXPECT_EQ(work.root.forward, classifier);
  EXPECT_NEAR(work.root.backward, 2 * classifier, classifier);
  EXPECT_EQ(work.forward_before, 0) << "embeddings multiply nothing";
}

TEST(CountWork, SaysWhenEachGradientIsReady) {
  const dist::StepWork work = work_of();
  const double last_begins = work.root.backward;
  for (const dist::ParameterWork& each : work.units[1].parameters) {
    EXPECT_GE(each.ready, last_begins);
    EXPECT_LE(each.ready, last_begins + work.units[1].backward);
  }
  for (const dist::ParameterWork& each : work.units[0].parameters) {
    EXPECT_GE(each.ready, last_begins + work.units[1].backward);
    EXPECT_LE(each.ready, work.backward());
  }
  // The embedding, which is the classifier as well, is complete at the very end.
  EXPECT_EQ(work.root.parameters[0].ready, work.backward());
}

TEST(CountWork, HasAllParametersOnce) {
  const dist::StepWork work = work_of();
  int64_t elements = 0;
  const auto add = [&](const dist::UnitWork& unit) {
    for (const dist::ParameterWork& each : unit.parameters) elements += each.elements;
  };
  add(work.root);
  for (const dist::UnitWork& unit : work.units) add(unit);
  const int64_t block = 12 * 64 * 64 + 13 * 64;
  EXPECT_EQ(elements, 256 * 64 + 16 * 64 + 2 * block + 2 * 64);
}

TEST(CountWork, CheckpointsComputeForwardAgain) {
  const dist::StepWork work = work_of();
  const dist::StepWork again = work_of("", 1, "checkpoint_every: 1");
  EXPECT_EQ(again.forward(), work.forward());
  // But for a block's last product, whose result backward does not need.
  const double last = 2.0 * 8 * 16 * 4 * 64 * 64;
  EXPECT_EQ(again.backward(), work.backward() + 2 * (work.units[0].forward - last));
  EXPECT_EQ(work_of("", 1, "recompute: CHEAP").backward(), work.backward());
}

TEST(CountWork, IsThatOfTheRanksShare) {
  const dist::StepWork all = work_of("train { micro_batch_size: 2 }");
  const dist::StepWork half = work_of("train { micro_batch_size: 2 }", 2);
  EXPECT_EQ(all.micro_batches, 4);
  EXPECT_EQ(half.micro_batches, 2);
  EXPECT_EQ(half.forward(), all.forward());
  EXPECT_EQ(work_of("", 4).forward() * 4, work_of().forward());
}

TEST(TimedWork, NeedsCountedOperations) {
  dist::StepWork counted = work_of();
  EXPECT_NO_THROW(timed_work(counted, {.step = 1}));
  counted.root = {};
  counted.units.clear();
  counted.forward_before = 0;
  EXPECT_TRUE(says(message_of<ConfigError>([&] { timed_work(counted, {.step = 1}); }),
                   "no operator of the model declares its floating-point operations"));
}

}  // namespace
}  // namespace lockstep::train
