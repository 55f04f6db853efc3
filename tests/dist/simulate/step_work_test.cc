#include "dist/simulate/step_work.h"

#include <gtest/gtest.h>

namespace lockstep::dist {
namespace {

StepWork work() {
  return {.units = {{.name = "a", .forward = 1, .backward = 2, .parameters = {{.ready = 7}}},
                    {.name = "b", .forward = 4, .backward = 8, .parameters = {{.ready = 6}}}},
          .root = {.name = "",
                   .forward = 16,
                   .backward = 32,
                   .parameters = {{.ready = 9}, {.ready = 5}}},
          .forward_before = 64,
          .backward_before = 128,
          .micro_batches = 3,
          .update = 10};
}

TEST(StepWork, AddsUpWhatAMicroBatchAndAStepTake) {
  EXPECT_EQ(work().forward(), 64 + 16 + 1 + 4);
  EXPECT_EQ(work().backward(), 128 + 32 + 2 + 8);
  EXPECT_EQ(work().seconds(), 3 * (85 + 170) + 10);
  EXPECT_EQ(work().seconds(4), 3 * (85 + 170) + 2.5);
}

TEST(StepWork, TheFirstGradientIsThatOfAnyParameterOrTheEndOfBackward) {
  EXPECT_EQ(work().first_ready(), 5);
  StepWork other = work();
  other.root.parameters = {};
  EXPECT_EQ(other.first_ready(), 6);
  other.units[1].parameters = {};
  EXPECT_EQ(other.first_ready(), 7);
  other.units[0].parameters = {};
  EXPECT_EQ(other.first_ready(), 170);
}

TEST(StepWork, IsScaledInAllItsTimes) {
  const StepWork twice = scaled(work(), 2);
  EXPECT_EQ(twice.forward(), 2 * work().forward());
  EXPECT_EQ(twice.backward(), 2 * work().backward());
  EXPECT_EQ(twice.update, 20);
  EXPECT_EQ(twice.first_ready(), 10);
  const StepWork passes = scaled_passes(work(), 2, 3);
  EXPECT_EQ(passes.forward(), 2 * work().forward());
  EXPECT_EQ(passes.backward(), 3 * work().backward());
  EXPECT_EQ(passes.update, 10);
  EXPECT_EQ(passes.first_ready(), 15) << "a gradient is ready in backward";
  EXPECT_EQ(passes.units[1].parameters[0].ready, 18);
}

}  // namespace
}  // namespace lockstep::dist
