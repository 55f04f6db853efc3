#include "optim/combined_schedules.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::optim {

namespace {

Optimizer& optimizer_of(const char* kind, const std::vector<Scheduler*>& schedulers) {
  LS_CHECK(!schedulers.empty(), ConfigError,
           "[optim.{}] there is no scheduler: expected at least one.", kind);
  return schedulers[0]->optimizer();
}

void check_optimizer(const Scheduler& whole, const std::vector<Scheduler*>& schedulers) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    LS_CHECK(&schedulers[i]->optimizer() == &whole.optimizer(), ConfigError,
             "[optim.{}] scheduler {}, a {}, belongs to another optimizer: expected one optimizer "
             "for all.",
             whole.kind(), i, schedulers[i]->kind());
  }
}

std::string scheduler_prefix(size_t i) { return "scheduler." + std::to_string(i) + "."; }

/// Adds the states of all schedulers to that of the one they belong to.
StateDict with_parts(StateDict state, const std::vector<Scheduler*>& schedulers) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    state.add(scheduler_prefix(i), schedulers[i]->state_dict());
  }
  return state;
}

/// Loads the states of all schedulers; returns what is left.
StateDict load_parts(const StateDict& state, const std::vector<Scheduler*>& schedulers) {
  StateDict own = state;
  std::erase_if(own.numbers, [](const auto& each) { return each.first.starts_with("scheduler."); });
  for (size_t i = 0; i < schedulers.size(); ++i) {
    schedulers[i]->load_state_dict(state.part(scheduler_prefix(i)));
  }
  return own;
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<Scheduler*> schedulers,
                           std::vector<int64_t> milestones)
    : Scheduler("SequentialLR", optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  check_optimizer(*this, schedulers_);
  LS_CHECK(milestones_.size() + 1 == schedulers_.size(), ConfigError,
           "[optim.SequentialLR] expected one milestone fewer than schedulers, got {} and {}.",
           milestones_.size(), schedulers_.size());
  LS_CHECK(std::ranges::is_sorted(milestones_) && (milestones_.empty() || milestones_[0] >= 0),
           ConfigError, "[optim.SequentialLR] expected milestones of at least 0, in order, got {}.",
           fmt::join(milestones_, ", "));
  begin();
}

void SequentialLR::begin() {
  set_last_step(0);
  reset_rates();
  active().begin();
  note_rates();
}

Scheduler& SequentialLR::active() const {
  const auto next = std::ranges::upper_bound(milestones_, last_step());
  return *schedulers_[static_cast<size_t>(next - milestones_.begin())];
}

void SequentialLR::step() {
  add_bases();
  set_last_step(last_step() + 1);
  if (std::ranges::binary_search(milestones_, last_step())) {
    reset_rates();
    active().begin();
  } else {
    active().step();
  }
  note_rates();
}

StateDict SequentialLR::state_dict() const {
  return with_parts(Scheduler::state_dict(), schedulers_);
}

void SequentialLR::load_state_dict(const StateDict& state) {
  Scheduler::load_state_dict(load_parts(state, schedulers_));
}

ChainedScheduler::ChainedScheduler(std::vector<Scheduler*> schedulers)
    : Scheduler("ChainedScheduler", optimizer_of("ChainedScheduler", schedulers)),
      schedulers_(std::move(schedulers)) {
  check_optimizer(*this, schedulers_);
  set_last_step(0);
  note_rates();
}

void ChainedScheduler::begin() {
  set_last_step(0);
  for (Scheduler* const scheduler : schedulers_) scheduler->begin();
  note_rates();
}

void ChainedScheduler::step() {
  add_bases();
  set_last_step(last_step() + 1);
  for (Scheduler* const scheduler : schedulers_) scheduler->step();
  note_rates();
}

StateDict ChainedScheduler::state_dict() const {
  return with_parts(Scheduler::state_dict(), schedulers_);
}

void ChainedScheduler::load_state_dict(const StateDict& state) {
  Scheduler::load_state_dict(load_parts(state, schedulers_));
}

}  // namespace lockstep::optim
