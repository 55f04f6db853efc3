// The part of Trainer that gathers, collects and distributes state that is spread over the ranks.

#include "core/ops/factory/factory.h"
#include "train/trainer.h"

namespace lockstep::train {

void Trainer::gather_weights() {
  give_up_next();
  if (sharded_ != nullptr && !sharded_->is_summoned()) sharded_->summon_full_parameters();
}

void Trainer::scatter_weights() {
  if (sharded_ != nullptr) sharded_->release_full_parameters(/*changed=*/true);
}

std::vector<nn::StoredParameter> Trainer::optimizer_state_shapes() const {
  if (sharded_ == nullptr) return optimizer_->state();
  std::vector<nn::StoredParameter> shapes;
  for (const std::string& name : optimizer_->state_names()) {
    for (const nn::NamedParameter& each : task_->model().named_parameters()) {
      if (!each.tensor.requires_grad()) continue;
      shapes.push_back({name + "." + each.name, empty(each.tensor.sizes(), {DType::kF32, kMeta})});
    }
  }
  return shapes;
}

std::vector<Tensor> Trainer::parts_of_state(size_t name) const {
  const std::vector<nn::StoredParameter> state = optimizer_->state();
  const size_t count = sharded_->parameters().size();
  std::vector<Tensor> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(state[name * count + i].tensor);
  return parts;
}

const Trainer::CollectedState& Trainer::collected_state() {
  if (collected_) return *collected_;
  collected_.emplace();
  collected_->weights = task_->model().stored_parameters();
  if (sharded_ == nullptr) {
    collected_->optimizer = optimizer_->state();
  } else {
    const size_t names = optimizer_->state_names().size();
    for (size_t name = 0; name < names; ++name) {
      collected_->parts.push_back(parts_of_state(name));
    }
  }
  return *collected_;
}

Tensor Trainer::collect_state(size_t number) {
  const CollectedState& state = collected_state();
  if (number < state.weights.size()) {
    const Tensor& weight = state.weights[number].tensor;
    return sharded_ == nullptr ? weight : sharded_->collect(weight);
  }
  number -= state.weights.size();
  if (sharded_ == nullptr) return state.optimizer[number].tensor;
  const size_t trained = sharded_->trained_count();
  return sharded_->collect_parts(number % trained, state.parts[number / trained]);
}

std::vector<nn::StoredParameter> Trainer::optimizer_state() {
  if (sharded_ == nullptr) return optimizer_->state();
  if (whole_state_.empty()) {
    for (const nn::StoredParameter& each : optimizer_state_shapes()) {
      whole_state_.push_back(
          {each.name, zeros(each.tensor.sizes(), {each.tensor.dtype(), settings_.device})});
    }
  }
  return whole_state_;
}

void Trainer::distribute_optimizer_state() {
  if (sharded_ == nullptr) return;
  const size_t trained = sharded_->trained_count();
  for (size_t name = 0; name < optimizer_->state_names().size(); ++name) {
    const std::vector<Tensor> parts = parts_of_state(name);
    for (size_t i = 0; i < trained; ++i) {
      const size_t number = name * trained + i;
      sharded_->distribute_parts(i, whole_state_.empty() ? Tensor() : whole_state_[number].tensor,
                                 parts);
    }
  }
  whole_state_.clear();
}

}  // namespace lockstep::train
