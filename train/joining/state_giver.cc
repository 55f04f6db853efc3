#include "train/joining/state_giver.h"

#include <algorithm>
#include <utility>

namespace lockstep::train {

namespace {

/// Bytes of which nobody notices that they are still to be taken.
constexpr size_t kNearlyNothing = size_t{1} << 20;
constexpr size_t kFew = size_t{64} << 20;
/// The part of the state that is copied between two steps: the memory that the copies need, and as
/// many steps until all is given.
constexpr size_t kSteps = 4;
/// Steps whose gradients may wait: a process that falls back further does not catch up.
constexpr size_t kStepsLeft = 4;
/// A state that can be given is given in fewer bytes than this many times its own, with gradients.
constexpr size_t kTimes = 8;

}  // namespace

StateGiver::StateGiver(Trainer& trainer, dist::Door& door, LiveState state, int most)
    : trainer_(trainer),
      door_(door),
      state_(std::move(state)),
      next_step_(trainer.steps_done()),
      at_once_(state_.bytes() / kSteps),
      most_left_(kFew + at_once_ + kStepsLeft * state_.gradient_bytes()),
      most_given_(kTimes * (kFew + state_.bytes())) {
  if (door_.begin_giving(most) == 0) return;
  writer_.add({.kind = StateRecord::Kind::kBegin});
  give_units(at_once_);
  give();
}

StateGiver::Standing StateGiver::add(const StepResult& step) {
  const dist::Door::Given given = door_.given();
  const bool follows = step.step == next_step_ && trainer_.steps_done() == next_step_ + 1;
  if (given.processes == 0 || !follows) {
    door_.end_giving();
    return Standing::kNobody;
  }
  ++next_step_;
  if (step.outcome.updated()) {
    const std::vector<Tensor>& gradients = trainer_.gradients();
    for (size_t i = 0; i < next_unit_; ++i) {
      const std::optional<uint32_t>& trained = state_.units[i].trained;
      if (!trained) continue;
      writer_.add_tensor(StateRecord::Kind::kGradient, *trained, 0, gradients[*trained]);
    }
  }
  for (size_t i = 0; i < state_.buffers.size(); ++i) {
    writer_.add_tensor(StateRecord::Kind::kBuffer, i, 0, state_.buffers[i]);
  }
  writer_.add_step(facts_of(trainer_, step));
  const bool is_whole = next_unit_ == state_.units.size();
  if (!is_whole && given.left < at_once_) give_units(at_once_ - given.left);
  give();
  if (is_whole && given.left <= kNearlyNothing) return Standing::kWhole;
  return given.left > most_left_ || given_ > most_given_ ? Standing::kTooSlow : Standing::kUnderWay;
}

/// Copies units of about `room` bytes, at least one.
void StateGiver::give_units(size_t room) {
  size_t copied = 0;
  while (next_unit_ < state_.units.size()) {
    const StateUnit& unit = state_.units[next_unit_];
    if (copied > 0 && copied + unit.bytes() > room) break;
    for (size_t i = 0; i < unit.tensors.size(); ++i) {
      writer_.add_tensor(StateRecord::Kind::kValues, next_unit_, i, unit.tensors[i]);
    }
    writer_.add({.kind = StateRecord::Kind::kUnit, .number = static_cast<uint32_t>(next_unit_)});
    copied += unit.bytes();
    ++next_unit_;
  }
  most_copied_ = std::max(most_copied_, copied);
}

void StateGiver::give() {
  std::vector<std::string> parts = writer_.take();
  for (const std::string& each : parts) given_ += each.size();
  door_.give(std::move(parts));
}

}  // namespace lockstep::train
