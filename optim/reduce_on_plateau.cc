#include "optim/reduce_on_plateau.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.mode == PlateauMode::kMin ? std::numeric_limits<double>::infinity()
                                              : -std::numeric_limits<double>::infinity()) {
  LS_CHECK(options.factor < 1, ConfigError,
           "[optim.ReduceLROnPlateau] factor is out of range: expected below 1, got {}.",
           options.factor);
  const size_t limits = options.min_learning_rate.size();
  LS_CHECK(limits == 1 || limits == optimizer.group_count(), ConfigError,
           "[optim.ReduceLROnPlateau] expected one min_learning_rate, or one for each group: {}, "
           "got {}.",
           optimizer.group_count(), limits);
  note_rates();
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold;
  const bool relative = options_.threshold_mode == ThresholdMode::kRelative;
  if (options_.mode == PlateauMode::kMin) {
    return metric < (relative ? best_ * (1 - threshold) : best_ - threshold);
  }
  return metric > (relative ? best_ * (1 + threshold) : best_ + threshold);
}

void ReduceLROnPlateau::step(double metric) {
  ++last_step_;
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > options_.patience) {
    reduce_rates();
    cooldown_left_ = options_.cooldown;
    bad_steps_ = 0;
  }
  note_rates();
}

void ReduceLROnPlateau::reduce_rates() {
  const std::vector<double>& lowest = options_.min_learning_rate;
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    const double rate = optimizer_.learning_rate(group);
    // Groups that were added later have the last limit.
    const double next =
        std::max(rate * options_.factor, lowest[std::min(group, lowest.size() - 1)]);
    if (rate - next > options_.epsilon) optimizer_.set_learning_rate(next, group);
  }
}

void ReduceLROnPlateau::note_rates() {
  last_rates_.clear();
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    last_rates_.push_back(optimizer_.learning_rate(group));
  }
}

StateDict ReduceLROnPlateau::state_dict() const {
  StateDict state;
  state.numbers["kind.ReduceLROnPlateau"] = 1;
  state.numbers["last_step"] = static_cast<double>(last_step_);
  state.numbers["best"] = best_;
  state.numbers["bad_steps"] = static_cast<double>(bad_steps_);
  state.numbers["cooldown_left"] = static_cast<double>(cooldown_left_);
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    state.numbers["learning_rate." + std::to_string(group)] = optimizer_.learning_rate(group);
  }
  return state;
}

void ReduceLROnPlateau::load_state_dict(const StateDict& state) {
  StateReader reader("ReduceLROnPlateau", state);
  reader.number("kind.ReduceLROnPlateau");
  const double last_step = reader.number("last_step");
  const double best = reader.number("best");
  const double bad_steps = reader.number("bad_steps");
  const double cooldown_left = reader.number("cooldown_left");
  std::vector<double> rates;
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    rates.push_back(reader.number("learning_rate." + std::to_string(group)));
  }
  reader.expect_end();
  last_step_ = static_cast<int64_t>(last_step);
  best_ = best;
  bad_steps_ = static_cast<int64_t>(bad_steps);
  cooldown_left_ = static_cast<int64_t>(cooldown_left);
  for (size_t group = 0; group < rates.size(); ++group) {
    optimizer_.set_learning_rate(rates[group], group);
  }
  note_rates();
}

}  // namespace lockstep::optim
