#include "optim/scheduler.h"

#include "core/base/check.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

Scheduler::Scheduler(const char* kind, Optimizer& optimizer) : kind_(kind), optimizer_(optimizer) {
  add_bases();
}

void Scheduler::add_bases() {
  for (size_t group = bases_.size(); group < optimizer_.group_count(); ++group) {
    if (!optimizer_.initial_learning_rate(group)) {
      optimizer_.set_initial_learning_rate(current(group), group);
    }
    bases_.push_back(*optimizer_.initial_learning_rate(group));
  }
}

void Scheduler::reset_rates() {
  for (size_t group = 0; group < bases_.size(); ++group) {
    optimizer_.set_learning_rate(bases_[group], group);
  }
}

void Scheduler::begin() {
  last_step_ = -1;
  Scheduler::step();
}

void Scheduler::step() {
  add_bases();
  ++last_step_;
  std::vector<double> rates;
  for (size_t group = 0; group < bases_.size(); ++group) rates.push_back(next_rate(group));
  for (size_t group = 0; group < bases_.size(); ++group) {
    optimizer_.set_learning_rate(rates[group], group);
  }
  note_rates();
}

void Scheduler::note_rates() {
  last_rates_.clear();
  for (size_t group = 0; group < optimizer_.group_count(); ++group) {
    last_rates_.push_back(current(group));
  }
}

StateDict Scheduler::state_dict() const {
  StateDict state;
  state.numbers[std::string("kind.") + kind_] = 1;
  state.numbers["last_step"] = static_cast<double>(last_step_);
  for (size_t group = 0; group < bases_.size(); ++group) {
    const std::string number = "." + std::to_string(group);
    state.numbers["base_learning_rate" + number] = bases_[group];
    state.numbers["learning_rate" + number] = current(group);
    if (group < last_rates_.size()) state.numbers["last_rate" + number] = last_rates_[group];
  }
  save_extra(state);
  return state;
}

void Scheduler::load_state_dict(const StateDict& state) {
  StateReader reader(kind_, state);
  reader.number(std::string("kind.") + kind_);
  const double last_step = reader.number("last_step");
  std::vector<double> bases;
  std::vector<double> rates;
  std::vector<double> last_rates;
  add_bases();
  for (size_t group = 0; group < bases_.size(); ++group) {
    const std::string number = "." + std::to_string(group);
    bases.push_back(reader.number("base_learning_rate" + number));
    rates.push_back(reader.number("learning_rate" + number));
    last_rates.push_back(reader.number_or("last_rate" + number, rates.back()));
  }
  load_extra(reader);
  reader.expect_end();
  last_step_ = static_cast<int64_t>(last_step);
  bases_ = std::move(bases);
  last_rates_ = std::move(last_rates);
  for (size_t group = 0; group < bases_.size(); ++group) {
    optimizer_.set_initial_learning_rate(bases_[group], group);
    optimizer_.set_learning_rate(rates[group], group);
  }
}

}  // namespace lockstep::optim
