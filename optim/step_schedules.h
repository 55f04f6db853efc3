#pragma once

#include <functional>

#include "optim/scheduler.h"

namespace lockstep::optim {

struct StepLROptions {
  int64_t step_size = 0;  ///< at least 1; must be given
  double gamma = 0.1;
};

/// Multiplies the rates by gamma every step_size steps.
class StepLR final : public Scheduler {
 public:
  /// Throws ConfigError if step_size is below 1.
  StepLR(Optimizer& optimizer, const StepLROptions& options);

 private:
  double next_rate(size_t group) const override;
  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};  ///< steps, in any order; one given twice counts twice
  double gamma = 0.1;
};

/// Multiplies the rates by gamma in each of these steps.
class MultiStepLR final : public Scheduler {
 public:
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options);

 private:
  double next_rate(size_t group) const override;
  MultiStepLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 1;
};

/// Multiplies the rates by gamma in each step.
class ExponentialLR final : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options);

 private:
  double next_rate(size_t group) const override;
  ExponentialLROptions options_;
};

/// The factor of the initial learning rate in a step.
using RateFactor = std::function<double(int64_t step)>;

/// Sets each rate to the initial one times a function of the step, whatever the rate was before.
/// The functions are no part of the state.
class LambdaLR final : public Scheduler {
 public:
  /// One function for all groups.
  LambdaLR(Optimizer& optimizer, RateFactor factor);
  /// One for each group. Throws ConfigError if there are more or fewer.
  LambdaLR(Optimizer& optimizer, std::vector<RateFactor> factors);

 private:
  double next_rate(size_t group) const override;
  std::vector<RateFactor> factors_;
};

}  // namespace lockstep::optim
