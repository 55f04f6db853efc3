#include "optim/reduce_on_plateau.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/expect_error.h"
#include "tests/optim/every_schedule.h"

namespace lockstep::optim {
namespace {

/// The metric of record_reference.py.
double metric(int step) { return 1.0 / (1 + step) + 0.05 * std::sin(step); }

const std::map<std::string, ReduceLROnPlateauOptions>& plateau_cases() {
  static const std::map<std::string, ReduceLROnPlateauOptions> kCases = {
      {"min", {.factor = 0.5, .patience = 2}},
      {"max", {.mode = PlateauMode::kMax, .factor = 0.3, .patience = 3, .cooldown = 4}},
      {"absolute",
       {.factor = 0.7,
        .patience = 1,
        .threshold = 0.01,
        .threshold_mode = ThresholdMode::kAbsolute,
        .min_learning_rate = {0.01, 0.005}}},
      {"max_absolute",
       {.mode = PlateauMode::kMax,
        .factor = 0.9,
        .patience = 0,
        .threshold = 0.1,
        .threshold_mode = ThresholdMode::kAbsolute,
        .epsilon = 1e-3}},
  };
  return kCases;
}

TEST(ReduceLROnPlateau, RatesArePyTorchs) {
  const nlohmann::json& recorded = reference()["plateau"];
  ASSERT_EQ(recorded.size(), plateau_cases().size());
  for (const auto& [name, options] : plateau_cases()) {
    const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
    ReduceLROnPlateau schedule(*optimizer, options);
    int step = 0;
    for (const nlohmann::json& want : recorded.at(name)) {
      schedule.step(metric(step++));
      EXPECT_EQ(schedule.last_step(), step);
      EXPECT_EQ(schedule.last_learning_rate(), rates(*optimizer));
      expect_near(rates(*optimizer), want.get<std::vector<double>>(), 1e-12, name);
    }
    EXPECT_EQ(step, 55);
    EXPECT_LT(optimizer->learning_rate(0), 0.1) << name << " has reduced nothing";
  }
}

TEST(ReduceLROnPlateau, GoesOnFromItsStateWithTheSameBits) {
  for (const auto& [name, options] : plateau_cases()) {
    const std::unique_ptr<Optimizer> want = two_groups<SGD>();
    const std::unique_ptr<Optimizer> got = two_groups<SGD>();
    ReduceLROnPlateau straight(*want, options);
    ReduceLROnPlateau resumed(*got, options);
    for (int step = 0; step < 20; ++step) straight.step(metric(step));
    resumed.load_state_dict(straight.state_dict());
    EXPECT_EQ(resumed.best(), straight.best());
    for (int step = 20; step < 55; ++step) {
      straight.step(metric(step));
      resumed.step(metric(step));
      EXPECT_EQ(rates(*got), rates(*want)) << name << ", step " << step;
    }
  }
}

TEST(ReduceLROnPlateau, NaNCountsAsNoImprovement) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  ReduceLROnPlateau schedule(*optimizer, {.factor = 0.5, .patience = 1});
  schedule.step(1);
  for (int step = 0; step < 2; ++step) schedule.step(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(optimizer->learning_rate(), 0.05);
  EXPECT_EQ(schedule.best(), 1);
}

TEST(ReduceLROnPlateau, AGroupThatIsAddedLaterHasTheLastLimit) {
  const std::unique_ptr<Optimizer> held = two_groups<SGD>();
  auto& optimizer = static_cast<SGD&>(*held);
  ReduceLROnPlateau schedule(optimizer,
                             {.factor = 0.5, .patience = 0, .min_learning_rate = {0.1, 0.015}});
  optimizer.add_group({zeros({2}).set_requires_grad()}, {.learning_rate = 0.02});
  for (int step = 0; step < 2; ++step) schedule.step(1);
  EXPECT_EQ(rates(optimizer), (std::vector<double>{0.1, 0.015, 0.015}));
}

TEST(ReduceLROnPlateau, OptionsAreChecked) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  expect_error<ConfigError>([&] { ReduceLROnPlateau(*optimizer, {.factor = 1}); },
                            "[optim.ReduceLROnPlateau]", "factor", "below 1");
  expect_error<ConfigError>(
      [&] {
        ReduceLROnPlateau(*optimizer, {.min_learning_rate = {0, 0, 0}});
      },
      "one for each group: 2, got 3");
}

}  // namespace
}  // namespace lockstep::optim
