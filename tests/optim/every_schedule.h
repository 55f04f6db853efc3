#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/adam.h"
#include "optim/combined_schedules.h"
#include "optim/cosine_schedules.h"
#include "optim/one_cycle.h"
#include "optim/sgd.h"
#include "optim/step_schedules.h"
#include "optim/warmup_schedules.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {

/// A schedule with those that it consists of; the last is the whole.
using Schedules = std::vector<std::unique_ptr<Scheduler>>;
using MakeSchedules = std::function<Schedules(Optimizer& optimizer)>;

/// Makes a schedule of type T, alone.
template <class T, class Options>
MakeSchedules alone(Options options) {
  return [options](Optimizer& optimizer) {
    Schedules made;
    made.push_back(std::make_unique<T>(optimizer, options));
    return made;
  };
}

inline Schedules chained(Optimizer& optimizer) {
  Schedules made;
  made.push_back(
      std::make_unique<ConstantLR>(optimizer, ConstantLROptions{.factor = 0.1, .total_iters = 20}));
  made.push_back(std::make_unique<ExponentialLR>(optimizer, ExponentialLROptions{.gamma = 0.9}));
  made.push_back(
      std::make_unique<ChainedScheduler>(std::vector<Scheduler*>{made[0].get(), made[1].get()}));
  return made;
}

inline Schedules sequential(Optimizer& optimizer) {
  Schedules made;
  made.push_back(std::make_unique<LinearLR>(
      optimizer, LinearLROptions{.start_factor = 0.1, .total_iters = 10}));
  made.push_back(std::make_unique<CosineAnnealingLR>(
      optimizer, CosineAnnealingLROptions{.t_max = 30, .eta_min = 0.001}));
  made.push_back(std::make_unique<StepLR>(optimizer, StepLROptions{.step_size = 4, .gamma = 0.5}));
  made.push_back(std::make_unique<SequentialLR>(
      optimizer, std::vector<Scheduler*>{made[0].get(), made[1].get(), made[2].get()},
      std::vector<int64_t>{10, 40}));
  return made;
}

inline Schedules sequential_restarts(Optimizer& optimizer) {
  Schedules made;
  made.push_back(
      std::make_unique<ConstantLR>(optimizer, ConstantLROptions{.factor = 0.5, .total_iters = 3}));
  made.push_back(std::make_unique<CosineAnnealingWarmRestarts>(
      optimizer, CosineAnnealingWarmRestartsOptions{.t_0 = 5, .t_mult = 2}));
  made.push_back(std::make_unique<LambdaLR>(
      optimizer, [](int64_t step) { return 1 / static_cast<double>(1 + step); }));
  made.push_back(std::make_unique<SequentialLR>(
      optimizer, std::vector<Scheduler*>{made[0].get(), made[1].get(), made[2].get()},
      std::vector<int64_t>{6, 35}));
  return made;
}

/// The cases of `schedule_cases` in record_reference.py.
inline const std::map<std::string, MakeSchedules>& every_schedule() {
  static const std::map<std::string, MakeSchedules> kCases = {
      {"step", alone<StepLR>(StepLROptions{.step_size = 7, .gamma = 0.3})},
      {"multi_step",
       alone<MultiStepLR>(MultiStepLROptions{.milestones = {5, 12, 12, 40}, .gamma = 0.5})},
      {"exponential", alone<ExponentialLR>(ExponentialLROptions{.gamma = 0.93})},
      {"lambda", alone<LambdaLR>(std::vector<RateFactor>{
                     [](int64_t step) { return std::pow(0.95, static_cast<double>(step)); },
                     [](int64_t step) { return 1 / static_cast<double>(1 + step); }})},
      {"constant", alone<ConstantLR>(ConstantLROptions{.factor = 0.25, .total_iters = 9})},
      {"linear",
       alone<LinearLR>(LinearLROptions{.start_factor = 0.2, .end_factor = 0.9, .total_iters = 15})},
      {"linear_to_zero",
       alone<LinearLR>(LinearLROptions{.start_factor = 1, .end_factor = 0, .total_iters = 11})},
      {"cosine", alone<CosineAnnealingLR>(CosineAnnealingLROptions{.t_max = 20, .eta_min = 0.002})},
      {"cosine_long", alone<CosineAnnealingLR>(CosineAnnealingLROptions{.t_max = 80})},
      {"warm_restarts", alone<CosineAnnealingWarmRestarts>(
                            CosineAnnealingWarmRestartsOptions{.t_0 = 6, .eta_min = 0.001})},
      {"warm_restarts_longer", alone<CosineAnnealingWarmRestarts>(
                                   CosineAnnealingWarmRestartsOptions{.t_0 = 5, .t_mult = 2})},
      {"one_cycle",
       alone<OneCycleLR>(OneCycleLROptions{.max_learning_rate = {0.5, 0.2}, .total_steps = 55})},
      {"one_cycle_linear", alone<OneCycleLR>(OneCycleLROptions{.max_learning_rate = {0.5},
                                                               .epochs = 5,
                                                               .steps_per_epoch = 11,
                                                               .pct_start = 0.4,
                                                               .annealing = Annealing::kLinear,
                                                               .div_factor = 10,
                                                               .final_div_factor = 100})},
      {"one_cycle_three_phase", alone<OneCycleLR>(OneCycleLROptions{.max_learning_rate = {0.5},
                                                                    .total_steps = 55,
                                                                    .base_momentum = 0.7,
                                                                    .max_momentum = 0.9,
                                                                    .three_phase = true})},
      {"chained", chained},
      {"sequential", sequential},
      {"sequential_restarts", sequential_restarts},
  };
  return kCases;
}

/// The script's optimizer of two groups, with rates 0.1 and 0.02.
template <class T>
std::unique_ptr<Optimizer> two_groups() {
  const std::vector<Tensor> parameters = start(DType::kF32);
  auto optimizer = std::make_unique<T>(ParameterList({parameters[0]}));
  optimizer->add_group({parameters[1]});
  optimizer->set_learning_rate(0.1, 0);
  optimizer->set_learning_rate(0.02, 1);
  return optimizer;
}

inline std::unique_ptr<Optimizer> optimizer_of(const std::string& name) {
  return name == "one_cycle" ? two_groups<AdamW>() : two_groups<SGD>();
}

inline std::vector<double> rates(const Optimizer& optimizer) {
  std::vector<double> rates;
  for (size_t group = 0; group < optimizer.group_count(); ++group) {
    rates.push_back(optimizer.learning_rate(group));
  }
  return rates;
}

}  // namespace lockstep::optim
