#include "optim/step_schedules.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace lockstep::optim {

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options)
    : Scheduler("StepLR", optimizer), options_(options) {
  LS_CHECK(options.step_size >= 1, ConfigError,
           "[optim.StepLR] step_size is out of range: expected at least 1, got {}.",
           options.step_size);
  begin();
}

double StepLR::next_rate(size_t group) const {
  const bool drops = !is_initial() && last_step() % options_.step_size == 0;
  return drops ? current(group) * options_.gamma : current(group);
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options)
    : Scheduler("MultiStepLR", optimizer), options_(options) {
  begin();
}

double MultiStepLR::next_rate(size_t group) const {
  const auto times = std::ranges::count(options_.milestones, last_step());
  return times == 0 ? current(group)
                    : current(group) * std::pow(options_.gamma, static_cast<double>(times));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options)
    : Scheduler("ExponentialLR", optimizer), options_(options) {
  begin();
}

double ExponentialLR::next_rate(size_t group) const {
  return is_initial() ? current(group) : current(group) * options_.gamma;
}

LambdaLR::LambdaLR(Optimizer& optimizer, RateFactor factor)
    : LambdaLR(optimizer, std::vector<RateFactor>(optimizer.group_count(), std::move(factor))) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<RateFactor> factors)
    : Scheduler("LambdaLR", optimizer), factors_(std::move(factors)) {
  LS_CHECK(factors_.size() == optimizer.group_count(), ConfigError,
           "[optim.LambdaLR] expected one function for each group: {}, got {}.",
           optimizer.group_count(), factors_.size());
  begin();
}

double LambdaLR::next_rate(size_t group) const {
  // Groups that were added later follow the last function.
  return base(group) * factors_[std::min(group, factors_.size() - 1)](last_step());
}

}  // namespace lockstep::optim
