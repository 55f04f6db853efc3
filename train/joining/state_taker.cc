#include "train/joining/state_taker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::train {

namespace {

template <class List>
auto& part_of_state(List& list, size_t number, const char* what) {
  LS_CHECK(number < list.size(), DataError,
           "[join] the ranks sent {} {} of a state that has {}. Start all ranks with the same "
           "program and config.",
           what, number, list.size());
  return list[number];
}

/// Whether bytes of a tensor begin and end where its elements do.
void check_place(const Tensor& tensor, const StateRecord& record) {
  const size_t size = size_of(tensor.dtype());
  LS_CHECK(record.offset <= tensor.nbytes() &&
               record.bytes.size() <= tensor.nbytes() - record.offset &&
               record.offset % size == 0 && record.bytes.size() % size == 0,
           DataError,
           "[join] the ranks sent {} bytes at {} for a tensor of {}. Start all ranks with the same "
           "program and config.",
           record.bytes.size(), record.offset, tensor.nbytes());
}

}  // namespace

StateTaker::StateTaker(const config::RunConfig& config, Trainer::Legacy& legacy)
    : StateTaker(config, live_state(legacy.task->model(), *legacy.optimizer), *legacy.optimizer,
                 legacy) {}

StateTaker::StateTaker(const config::RunConfig& config, std::optional<LiveState> state,
                       Optimizer& optimizer, Trainer::Legacy& legacy)
    : legacy_(legacy), optimizer_(optimizer), state_(std::move(state)) {
  if (config.reproducibility() == config::BITWISE) exact_rows_.emplace();
  forget();
}

void StateTaker::forget() {
  steps_ = -1;
  last_.reset();
  if (!state_) return;
  is_there_.assign(state_->units.size(), false);
  gradients_.resize(state_->trained.size());
  arrived_.assign(state_->trained.size(), 0);
}

void StateTaker::take(const std::string& part) {
  LS_CHECK(state_, DataError,
           "[join] the ranks send a state in parts that this process has no place for. Start all "
           "ranks with the same program and config.");
  for (std::string_view left = part; !left.empty();) take(take_record(left));
}

void StateTaker::take(const StateRecord& record) {
  switch (record.kind) {
    case StateRecord::Kind::kBegin:
      return forget();
    case StateRecord::Kind::kValues:
      return write(part_of_state(part_of_state(state_->units, record.number, "unit").tensors,
                                 record.tensor, "tensor"),
                   record);
    case StateRecord::Kind::kUnit:
      (void)part_of_state(state_->units, record.number, "unit");
      is_there_[record.number] = true;
      return;
    case StateRecord::Kind::kBuffer:
      return write(part_of_state(state_->buffers, record.number, "buffer"), record);
    case StateRecord::Kind::kGradient:
      return add_gradient(record);
    case StateRecord::Kind::kStep:
      return follow(step_facts_of(record.bytes));
  }
}

void StateTaker::write(const Tensor& tensor, const StateRecord& record) const {
  const NoGradGuard no_grad;
  check_place(tensor, record);
  const auto size = static_cast<int64_t>(size_of(tensor.dtype()));
  const int64_t first = static_cast<int64_t>(record.offset) / size;
  const int64_t count = static_cast<int64_t>(record.bytes.size()) / size;
  const Tensor values = empty({count}, tensor.dtype());
  std::memcpy(values.data(), record.bytes.data(), record.bytes.size());
  // An operator, so that casts of the tensor are made anew.
  copy_(slice(tensor.detach().view({-1}), 0, first, first + count), values);
}

void StateTaker::add_gradient(const StateRecord& record) {
  const Tensor& parameter = part_of_state(state_->trained, record.number, "gradient");
  check_place(parameter, record);
  Tensor& gradient = gradients_[record.number];
  if (!gradient.defined()) gradient = empty(parameter.sizes(), parameter.dtype());
  std::memcpy(static_cast<char*>(gradient.data()) + record.offset, record.bytes.data(),
              record.bytes.size());
  arrived_[record.number] += record.bytes.size();
}

/// Makes the update of a step to the units that are there.
void StateTaker::follow(const StepFacts& facts) {
  const NoGradGuard no_grad;
  optimizer_.set_steps(facts.updates);
  if (facts.step.outcome.updated()) {
    std::vector<uint32_t> updated;
    for (size_t i = 0; i < state_->units.size(); ++i) {
      const std::optional<uint32_t>& trained = state_->units[i].trained;
      if (is_there_[i] && trained) updated.push_back(*trained);
    }
    std::ranges::sort(updated);
    for (const uint32_t each : updated) {
      LS_CHECK(arrived_[each] == state_->trained[each].nbytes(), DataError,
               "[join] step {} came with {} bytes of gradient {}: expected {}.",
               facts.step.step + 1, arrived_[each], each, state_->trained[each].nbytes());
    }
    DeviceScalars factors;
    if (facts.clip_factor) factors.grad_factor = full({}, *facts.clip_factor, {DType::kF64, kCPU});
    optimizer_.step_part(updated, gradients_, facts.step.learning_rate, facts.gradient_mean,
                         factors);
  }
  arrived_.assign(arrived_.size(), 0);
  legacy_.position = facts.position;
  legacy_.scale = facts.scale;
  legacy_.spikes = facts.spikes;
  legacy_.early_end = facts.early_end;
  if (std::ranges::find(is_there_, false) != is_there_.end()) return;
  steps_ = facts.position.step;
  last_ = facts.step;
}

}  // namespace lockstep::train
