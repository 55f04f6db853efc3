// Schedules set the rates that PyTorch's set, and go on from their state.

#include <gtest/gtest.h>

#include "optim/adagrad.h"
#include "tests/core/expect_error.h"
#include "tests/optim/every_schedule.h"

namespace lockstep::optim {
namespace {

constexpr double kRounding = 1e-12;

TEST(Schedules, RatesArePyTorchs) {
  const nlohmann::json& recorded = reference()["schedules"];
  ASSERT_EQ(recorded.size(), every_schedule().size());
  for (const auto& [name, make] : every_schedule()) {
    const std::unique_ptr<Optimizer> optimizer = optimizer_of(name);
    const Schedules schedules = make(*optimizer);
    Scheduler& schedule = *schedules.back();
    const auto want = recorded.at(name).at("rates").get<std::vector<std::vector<double>>>();
    ASSERT_EQ(want.size(), 56u);
    for (size_t step = 0; step < want.size(); ++step) {
      if (step > 0) schedule.step();
      EXPECT_EQ(schedule.last_step(), static_cast<int64_t>(step)) << name;
      EXPECT_EQ(schedule.last_learning_rate(), rates(*optimizer)) << name;
      expect_near(rates(*optimizer), want[step], kRounding, name + ", " + std::to_string(step));
    }
  }
}

TEST(Schedules, OneCycleMovesMomentumAsPyTorchDoes) {
  for (const char* name : {"one_cycle", "one_cycle_linear", "one_cycle_three_phase"}) {
    const std::unique_ptr<Optimizer> optimizer = optimizer_of(name);
    const Schedules schedules = every_schedule().at(name)(*optimizer);
    for (const double want : reference()["schedules"].at(name).at("momenta")) {
      for (size_t group = 0; group < 2; ++group) {
        EXPECT_NEAR(optimizer->momentum(group).value(), want, kRounding) << name;
      }
      schedules.back()->step();
    }
  }
}

TEST(Schedules, WarmRestartsAtFractionsArePyTorchs) {
  int64_t t_mult = 1;
  for (const nlohmann::json& want : reference()["fractions"]["t_mult"]) {
    const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
    CosineAnnealingWarmRestarts schedule(*optimizer,
                                         {.t_0 = 4, .t_mult = t_mult++, .eta_min = 0.001});
    double epoch = 0;
    for (const double rate : want) {
      schedule.step(epoch);
      EXPECT_EQ(schedule.last_step(), static_cast<int64_t>(epoch));
      EXPECT_NEAR(optimizer->learning_rate(), rate, kRounding) << t_mult - 1 << ", " << epoch;
      epoch += 0.25;
    }
  }
}

/// Rates, and momenta where there are any.
std::vector<double> settings(const Optimizer& optimizer) {
  std::vector<double> values = rates(optimizer);
  for (size_t group = 0; group < optimizer.group_count(); ++group) {
    values.push_back(optimizer.momentum(group).value_or(0));
  }
  return values;
}

TEST(Schedules, GoOnFromTheirStateWithTheSameBits) {
  for (const auto& [name, make] : every_schedule()) {
    for (const bool optimizer_first : {false, true}) {
      const std::unique_ptr<Optimizer> want = optimizer_of(name);
      const Schedules straight = make(*want);
      for (int step = 0; step < 17; ++step) straight.back()->step();
      const StateDict state = straight.back()->state_dict();
      const StateDict optimizer_state = want->state_dict();

      const std::unique_ptr<Optimizer> got = optimizer_of(name);
      if (optimizer_first) got->load_state_dict(optimizer_state);
      const Schedules resumed = make(*got);
      resumed.back()->load_state_dict(state);
      if (!optimizer_first) got->load_state_dict(optimizer_state);
      EXPECT_EQ(settings(*got), settings(*want)) << name;
      EXPECT_EQ(resumed.back()->last_learning_rate(), straight.back()->last_learning_rate());
      for (int step = 17; step < 55; ++step) {
        straight.back()->step();
        resumed.back()->step();
        EXPECT_EQ(settings(*got), settings(*want)) << name << ", step " << step;
      }
    }
  }
}

TEST(Schedules, ARateThatIsSetByHandIsMovedOn) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  ExponentialLR schedule(*optimizer, {.gamma = 0.5});
  optimizer->set_learning_rate(0.8, 0);
  schedule.step();
  EXPECT_EQ(rates(*optimizer), (std::vector<double>{0.4, 0.01}));
}

TEST(Schedules, AGroupThatIsAddedLaterFollows) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  SGD optimizer({parameters[0]}, {.learning_rate = 1});
  StepLR schedule(optimizer, {.step_size = 1, .gamma = 0.5});
  optimizer.add_group({parameters[1]}, {.learning_rate = 4});
  schedule.step();
  EXPECT_EQ(rates(optimizer), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(optimizer.initial_learning_rate(1), 4);
}

TEST(Schedules, AGroupThatIsAddedLaterFollowsTheLastFunction) {
  const std::unique_ptr<Optimizer> held = two_groups<SGD>();
  auto& optimizer = static_cast<SGD&>(*held);
  LambdaLR schedule(
      optimizer, std::vector<RateFactor>{[](int64_t) { return 1.0; }, [](int64_t) { return 0.5; }});
  optimizer.add_group({zeros({2}).set_requires_grad()}, {.learning_rate = 4});
  schedule.step();
  EXPECT_EQ(optimizer.learning_rate(2), 2);
}

TEST(Schedules, AGroupThatIsAddedLaterHasTheLastHighestRateOfACycle) {
  const std::unique_ptr<Optimizer> held = two_groups<SGD>();
  auto& optimizer = static_cast<SGD&>(*held);
  OneCycleLR schedule(optimizer, {.max_learning_rate = {1, 3}, .total_steps = 4, .pct_start = 0.5});
  optimizer.add_group({zeros({2}).set_requires_grad()}, {.learning_rate = 0.5});
  schedule.step();  // to the top of the cycle
  EXPECT_EQ(rates(optimizer), (std::vector<double>{1, 3, 3}));
}

TEST(Schedules, TheFirstScheduleRemembersTheInitialRates) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  const LinearLR warmup(*optimizer, {.start_factor = 0.5, .total_iters = 4});
  const CosineAnnealingLR decay(*optimizer, {.t_max = 4});
  EXPECT_EQ(optimizer->initial_learning_rate(0), 0.1);
  EXPECT_EQ(optimizer->learning_rate(0), 0.05);
}

TEST(Schedules, OptionsOutOfTheirRangeAreRefused) {
  const std::unique_ptr<Optimizer> held = two_groups<SGD>();
  Optimizer& optimizer = *held;
  expect_error<ConfigError>([&] { StepLR(optimizer, {}); }, "[optim.StepLR]", "step_size");
  expect_error<ConfigError>([&] { CosineAnnealingLR(optimizer, {}); }, "t_max");
  expect_error<ConfigError>([&] { CosineAnnealingWarmRestarts(optimizer, {.t_0 = 0}); }, "t_0");
  expect_error<ConfigError>(
      [&] { CosineAnnealingWarmRestarts(optimizer, {.t_0 = 1, .t_mult = 0}); }, "t_mult");
  expect_error<ConfigError>([&] { ConstantLR(optimizer, {.factor = 1.5}); }, "factor", "1.5");
  expect_error<ConfigError>([&] { LinearLR(optimizer, {.start_factor = 0}); }, "start_factor");
  expect_error<ConfigError>([&] { LinearLR(optimizer, {.end_factor = -1}); }, "end_factor");
  expect_error<ConfigError>(
      [&] { LambdaLR(optimizer, std::vector<RateFactor>(3, [](int64_t) { return 1.0; })); },
      "one function for each group: 2, got 3");
  EXPECT_EQ(rates(optimizer), (std::vector<double>{0.1, 0.02}));
}

TEST(Schedules, OneCycleChecksItsLengthAndItsOptimizer) {
  const std::unique_ptr<Optimizer> held = two_groups<SGD>();
  expect_error<ConfigError>([&] { OneCycleLR(*held, {.max_learning_rate = {1}}); }, "total_steps");
  expect_error<ConfigError>([&] { OneCycleLR(*held, {.total_steps = 4}); },
                            "one for each group: 2, got 0");
  expect_error<ConfigError>(
      [&] { OneCycleLR(*held, {.max_learning_rate = {1}, .total_steps = 4, .pct_start = 2}); },
      "pct_start");
  const std::vector<Tensor> parameters = start(DType::kF32);
  Adagrad without(parameters);
  const OneCycleLROptions options{.max_learning_rate = {1}, .total_steps = 4};
  expect_error<ConfigError>([&] { OneCycleLR(without, options); }, "Adagrad", "momentum");

  OneCycleLR schedule(*held, options);
  for (int step = 0; step < 4; ++step) schedule.step();
  expect_error<ConfigError>([&] { schedule.step(); }, "the cycle is over", "4 steps");
  EXPECT_EQ(schedule.last_step(), 4);
}

TEST(Schedules, PartsMustBelongToOneOptimizer) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  const std::unique_ptr<Optimizer> other = two_groups<SGD>();
  ExponentialLR a(*optimizer, {.gamma = 0.5});
  ExponentialLR b(*other, {.gamma = 0.5});
  expect_error<ConfigError>(
      [&] {
        SequentialLR(*optimizer, {&a, &b}, {3});
      },
      "scheduler 1, a ExponentialLR, belongs to another optimizer");
  expect_error<ConfigError>([&] { ChainedScheduler({&a, &b}); }, "[optim.ChainedScheduler]");
  expect_error<ConfigError>([&] { ChainedScheduler({}); }, "there is no scheduler");
  expect_error<ConfigError>([&] { SequentialLR(*optimizer, {&a}, {3}); }, "got 1 and 1");
  ExponentialLR c(*optimizer, {.gamma = 0.5});
  ExponentialLR d(*optimizer, {.gamma = 0.5});
  expect_error<ConfigError>([&] { SequentialLR(*optimizer, {&a, &c, &d}, {5, 3}); }, "in order");
}

TEST(Schedules, AStateOfAnotherKindIsRefused) {
  const std::unique_ptr<Optimizer> optimizer = two_groups<SGD>();
  const StepLR step(*optimizer, {.step_size = 2});
  ExponentialLR exponential(*optimizer, {.gamma = 0.5});
  expect_error<CheckpointError>([&] { exponential.load_state_dict(step.state_dict()); },
                                "[optim.ExponentialLR]", "kind.ExponentialLR");
  const std::vector<Tensor> parameters = start(DType::kF32);
  SGD one_group(parameters, {});
  StepLR of_one(one_group, {.step_size = 2});
  expect_error<CheckpointError>([&] { of_one.load_state_dict(step.state_dict()); }, "rate.1");
}

TEST(Schedules, AChainInASequenceBeginsAtItsMilestone) {
  const std::vector<Tensor> parameters = start(DType::kF32);
  SGD optimizer(parameters, {.learning_rate = 1});
  ConstantLR quarter(optimizer, {.factor = 0.25, .total_iters = 100});
  ConstantLR half(optimizer, {.factor = 0.5, .total_iters = 2});
  ExponentialLR tenth(optimizer, {.gamma = 0.1});
  ChainedScheduler both({&half, &tenth});
  SequentialLR schedule(optimizer, {&quarter, &both}, {2});
  std::vector<double> got{optimizer.learning_rate()};
  for (int step = 0; step < 4; ++step) {
    schedule.step();
    got.push_back(optimizer.learning_rate());
  }
  expect_near(got, {0.25, 0.25, 0.5, 0.05, 0.01}, kRounding, "rates");
}

}  // namespace
}  // namespace lockstep::optim
