#include "optim/cosine_schedules.h"

#include <cmath>
#include <numbers>

#include "core/base/check.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options)
    : Scheduler("CosineAnnealingLR", optimizer), options_(options) {
  LS_CHECK(options.t_max >= 1, ConfigError,
           "[optim.CosineAnnealingLR] t_max is out of range: expected at least 1, got {}.",
           options.t_max);
  begin();
}

double CosineAnnealingLR::next_rate(size_t group) const {
  if (is_initial()) return current(group);
  const double lowest = options_.eta_min;
  const auto half = static_cast<double>(options_.t_max);
  // 1 + cos at a step; the ratio of two of them leads from one rate to the next.
  const auto height = [&](int64_t step) {
    return 1 + std::cos(std::numbers::pi * static_cast<double>(step) / half);
  };
  if ((last_step() - 1 - options_.t_max) % (2 * options_.t_max) == 0) {
    // The step before was at the bottom, where the ratio is not defined.
    return current(group) + (base(group) - lowest) * (1 - std::cos(std::numbers::pi / half)) / 2;
  }
  return height(last_step()) / height(last_step() - 1) * (current(group) - lowest) + lowest;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options)
    : Scheduler("CosineAnnealingWarmRestarts", optimizer), options_(options) {
  LS_CHECK(options.t_0 >= 1, ConfigError,
           "[optim.CosineAnnealingWarmRestarts] t_0 is out of range: expected at least 1, got {}.",
           options.t_0);
  LS_CHECK(
      options.t_mult >= 1, ConfigError,
      "[optim.CosineAnnealingWarmRestarts] t_mult is out of range: expected at least 1, got {}.",
      options.t_mult);
  begin();
}

void CosineAnnealingWarmRestarts::begin() {
  period_ = static_cast<double>(options_.t_0);
  in_period_ = 0;
  Scheduler::begin();
}

void CosineAnnealingWarmRestarts::step() {
  in_period_ += 1;
  if (in_period_ >= period_) {
    in_period_ = std::fmod(in_period_, period_);
    period_ *= static_cast<double>(options_.t_mult);
  }
  Scheduler::step();
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  LS_CHECK(epoch >= 0, ConfigError,
           "[optim.CosineAnnealingWarmRestarts] epoch is out of range: expected at least 0, got "
           "{}.",
           epoch);
  const auto first = static_cast<double>(options_.t_0);
  const auto times = static_cast<double>(options_.t_mult);
  if (epoch < first) {
    period_ = first;
    in_period_ = epoch;
  } else if (options_.t_mult == 1) {
    period_ = first;
    in_period_ = std::fmod(epoch, first);
  } else {
    // Restarts so far: the n-th comes after t_0 (t_mult^n - 1) / (t_mult - 1) steps.
    const double restarts = std::trunc(std::log(epoch / first * (times - 1) + 1) / std::log(times));
    const double power = std::pow(times, restarts);
    in_period_ = epoch - first * (power - 1) / (times - 1);
    period_ = first * power;
  }
  set_last_step(static_cast<int64_t>(std::floor(epoch)) - 1);
  Scheduler::step();
}

double CosineAnnealingWarmRestarts::next_rate(size_t group) const {
  const double height = 1 + std::cos(std::numbers::pi * in_period_ / period_);
  return options_.eta_min + (base(group) - options_.eta_min) * height / 2;
}

void CosineAnnealingWarmRestarts::save_extra(StateDict& state) const {
  state.numbers["period"] = period_;
  state.numbers["in_period"] = in_period_;
}

void CosineAnnealingWarmRestarts::load_extra(StateReader& reader) {
  const double period = reader.number("period");
  in_period_ = reader.number("in_period");
  period_ = period;
}

}  // namespace lockstep::optim
