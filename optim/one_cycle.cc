#include "optim/one_cycle.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

namespace {

int64_t total_steps_of(const OneCycleLROptions& options) {
  LS_CHECK(options.total_steps >= 0, ConfigError,
           "[optim.OneCycleLR] total_steps is out of range: expected at least 1, got {}.",
           options.total_steps);
  if (options.total_steps > 0) return options.total_steps;
  LS_CHECK(options.epochs >= 1 && options.steps_per_epoch >= 1, ConfigError,
           "[optim.OneCycleLR] the length is not known: expected total_steps, or epochs and "
           "steps_per_epoch, of at least 1, got {} epochs of {} steps.",
           options.epochs, options.steps_per_epoch);
  return options.epochs * options.steps_per_epoch;
}

OneCycleLROptions checked(OneCycleLROptions options, const Optimizer& optimizer) {
  const size_t groups = optimizer.group_count();
  options.total_steps = total_steps_of(options);
  LS_CHECK(options.pct_start >= 0 && options.pct_start <= 1, ConfigError,
           "[optim.OneCycleLR] pct_start is out of range: expected from 0 to 1, got {}.",
           options.pct_start);
  if (options.max_learning_rate.size() == 1) {
    options.max_learning_rate.resize(groups, options.max_learning_rate[0]);
  }
  LS_CHECK(options.max_learning_rate.size() == groups, ConfigError,
           "[optim.OneCycleLR] expected one max_learning_rate, or one for each group: {}, got {}.",
           groups, options.max_learning_rate.size());
  LS_CHECK(!options.cycle_momentum || optimizer.momentum(0).has_value(), ConfigError,
           "[optim.OneCycleLR] {} has neither momentum nor beta1. Set cycle_momentum = false.",
           optimizer.kind());
  return options;
}

/// Sets the rates that the cycle begins with as the initial ones.
Optimizer& prepared(Optimizer& optimizer, const OneCycleLROptions& options) {
  for (size_t group = 0; group < optimizer.group_count(); ++group) {
    const double highest = options.max_learning_rate[group];
    optimizer.set_initial_learning_rate(highest / options.div_factor, group);
  }
  return optimizer;
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : Scheduler("OneCycleLR", prepared(optimizer, checked(options, optimizer))),
      options_(checked(options, optimizer)) {
  begin();
}

void OneCycleLR::begin() {
  Scheduler::begin();
  set_momenta();
}

void OneCycleLR::step() {
  LS_CHECK(last_step() < options_.total_steps, ConfigError,
           "[optim.OneCycleLR] the cycle is over: expected at most {} steps, got one more.",
           options_.total_steps);
  Scheduler::step();
  set_momenta();
}

std::vector<OneCycleLR::Phase> OneCycleLR::phases(size_t group) const {
  const auto& highest_rates = options_.max_learning_rate;
  const double high = highest_rates[std::min(group, highest_rates.size() - 1)];
  const double first = base(group);
  const double last = first / options_.final_div_factor;
  const double slow = options_.base_momentum;
  const double fast = options_.max_momentum;
  const auto total = static_cast<double>(options_.total_steps);
  const double rise = options_.pct_start * total;
  if (!options_.three_phase) {
    return {{rise - 1, first, high, fast, slow}, {total - 1, high, last, slow, fast}};
  }
  return {{rise - 1, first, high, fast, slow},
          {2 * rise - 2, high, first, slow, fast},
          {total - 1, first, last, fast, fast}};
}

OneCycleLR::Place OneCycleLR::place(size_t group) const {
  const auto step = static_cast<double>(last_step());
  const std::vector<Phase> list = phases(group);
  double start = 0;
  size_t i = 0;
  while (i + 1 < list.size() && step > list[i].end) start = list[i++].end;
  // A phase of one step is at its end.
  const double length = list[i].end - start;
  return {list[i], length == 0 ? 1 : (step - start) / length};
}

double OneCycleLR::between(double from, double to, double part) const {
  if (options_.annealing == Annealing::kLinear) return (to - from) * part + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

double OneCycleLR::next_rate(size_t group) const {
  const Place now = place(group);
  return between(now.phase.from_rate, now.phase.to_rate, now.part);
}

void OneCycleLR::set_momenta() const {
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < optimizer().group_count(); ++group) {
    const Place now = place(group);
    optimizer().set_momentum(between(now.phase.from_momentum, now.phase.to_momentum, now.part),
                             group);
  }
}

void OneCycleLR::save_extra(StateDict& state) const {
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < optimizer().group_count(); ++group) {
    state.numbers["momentum." + std::to_string(group)] = *optimizer().momentum(group);
  }
}

void OneCycleLR::load_extra(StateReader& reader) {
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < optimizer().group_count(); ++group) {
    optimizer().set_momentum(reader.number("momentum." + std::to_string(group)), group);
  }
}

}  // namespace lockstep::optim
