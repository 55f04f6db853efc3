#include "train/loss_spike.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Has taken in losses 1 and 3 and norms 10 and 14: means 2 and 12, deviations 1 and 2.
SpikeWatch full(SpikeRule rule = {.action = SpikeAction::kSkip, .z = 2, .window = 2, .limit = 2}) {
  SpikeWatch watch(rule);
  EXPECT_FALSE(watch.add(0, 1, 10));
  EXPECT_EQ(watch.limits().loss, kNever);  // the window is not full
  EXPECT_FALSE(watch.add(1, 3, 14));
  return watch;
}

TEST(SpikeWatch, ComparesWithMeanAndDeviationOfTheWindow) {
  const SpikeWatch watch = full();
  EXPECT_EQ(watch.limits().loss, 4);
  EXPECT_EQ(watch.limits().grad_norm, 16);
}

TEST(SpikeWatch, OnlyWhatLiesAboveTheLimitIsASpike) {
  EXPECT_FALSE(full().add(2, 4, 16));
  EXPECT_TRUE(full().add(2, std::nextafter(4, 5), 16));
  EXPECT_TRUE(full().add(2, 4, std::nextafter(16, 17)));
  EXPECT_FALSE(full().add(2, -100, -100));
}

TEST(SpikeWatch, ASpikeStaysOutOfTheWindowAndOthersPushTheOldestOut) {
  SpikeWatch watch = full();
  EXPECT_TRUE(watch.add(2, 9, 12));
  EXPECT_EQ(watch.memory().losses, (std::vector<double>{1, 3}));
  EXPECT_EQ(watch.memory().row, (SpikeRow{1, 2}));
  EXPECT_FALSE(watch.add(3, 2, 12));
  EXPECT_EQ(watch.memory().losses, (std::vector<double>{3, 2}));
  EXPECT_EQ(watch.memory().grad_norms, (std::vector<double>{14, 12}));
  EXPECT_EQ(watch.memory().row.count, 0);
}

TEST(SpikeWatch, AfterTheLimitInARowTheWindowBeginsAnew) {
  SpikeWatch watch = full();
  EXPECT_TRUE(watch.add(2, 9, 12));
  EXPECT_TRUE(watch.add(3, 9, 12));
  EXPECT_EQ(watch.limits().loss, kNever);
  EXPECT_FALSE(watch.add(4, 9, 12));
  EXPECT_EQ(watch.memory().losses, std::vector<double>{9});
  EXPECT_EQ(watch.memory().row, SpikeRow());
}

TEST(SpikeWatch, StepsRepeatedAfterARollbackEndNoRow) {
  SpikeWatch watch = full();
  const SpikeMemory before = watch.memory();
  EXPECT_TRUE(watch.add(5, 9, 12));
  const SpikeRow row = watch.memory().row;
  watch.remember(before);
  watch.set_row(row);
  EXPECT_FALSE(watch.add(5, 2, 12));
  EXPECT_EQ(watch.memory().row, (SpikeRow{1, 5}));
  EXPECT_FALSE(watch.add(6, 2.5, 13));
  EXPECT_EQ(watch.memory().row.count, 0);
}

TEST(SpikeWatch, EqualNumbersHaveNoSpikes) {
  SpikeWatch watch({.action = SpikeAction::kNote, .window = 3});
  for (int64_t step = 0; step < 3; ++step) watch.add(step, 0.1, 1);
  EXPECT_EQ(watch.limits().loss, kNever);
  EXPECT_FALSE(watch.add(3, 100, 1));
}

TEST(SpikeWatch, FindsNothingUnlessAsked) {
  SpikeWatch watch = full({.action = SpikeAction::kKeep, .z = 2, .window = 2});
  EXPECT_FALSE(watch.add(2, 1000, 1000));
  EXPECT_TRUE(watch.memory().losses.empty());
}

TEST(SpikeWatch, RemembersTheNewestOfALongerWindow) {
  SpikeWatch watch({.action = SpikeAction::kSkip, .window = 2});
  watch.remember({.losses = {1, 2, 3}, .grad_norms = {4, 5, 6}});
  EXPECT_EQ(watch.memory(), (SpikeMemory{.losses = {2, 3}, .grad_norms = {5, 6}}));
}

TEST(SpikeWatch, SaysWhichNumberAndHowFarOff) {
  EXPECT_EQ(full().describe(9, 100),
            "loss 9 is 7.0 deviations above the mean 2 of the last 2 steps");
  EXPECT_EQ(full().describe(2, 17),
            "gradient norm 17 is 2.5 deviations above the mean 12 of the last 2 steps");
}

TEST(SpikeRule, LeavesOutWithSkipAndRollbackAlone) {
  const TemporaryDirectory folder;
  const auto rule = [&](const std::string& action) {
    return spike_rule_of(tiny_run(
        folder, "train { loss_spike { action: " + action + " z: 4.5 window: 9 limit: 7 } }"));
  };
  EXPECT_EQ(rule("SKIP").z, 4.5);
  EXPECT_EQ(rule("SKIP").window, 9);
  EXPECT_EQ(rule("SKIP").limit, 7);
  EXPECT_TRUE(rule("SKIP").leaves_out());
  EXPECT_TRUE(rule("ROLLBACK").leaves_out());
  EXPECT_FALSE(rule("NOTE").leaves_out());
  EXPECT_EQ(rule("NOTE").action, SpikeAction::kNote);
  EXPECT_EQ(spike_rule_of(tiny_run(folder)).action, SpikeAction::kKeep);
}

}  // namespace
}  // namespace lockstep::train
