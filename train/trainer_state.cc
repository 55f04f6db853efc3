// The part of Trainer that says what state a rank has, and gathers, collects and distributes what
// is spread over the ranks.

#include <unordered_map>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/shard_layout.h"
#include "train/trainer.h"

namespace lockstep::train {

bool Trainer::changes_early() const {
  // A rank alone moves running statistics in its forward passes.
  return early_update_ != nullptr || (group_ == nullptr && has_statistics());
}

bool Trainer::keeps_steps_done() { return !spreads_state() && keeps_own_state(); }

bool Trainer::keeps_own_state() {
  if (is_asynchronous(device().type) || local_ != nullptr) return false;
  if (!open_) return true;
  if (open_->has_changed) return false;
  if (ready_) return true;  // the step may still be finished
  default_generator().set_state(open_->random_state);
  open_.reset();
  return true;
}

void Trainer::gather_weights() {
  give_up_next();
  if (sharded_ != nullptr && !sharded_->is_summoned()) sharded_->summon_full_parameters();
}

void Trainer::scatter_weights() {
  if (sharded_ != nullptr) sharded_->release_full_parameters(/*changed=*/true);
}

std::vector<nn::StoredParameter> Trainer::optimizer_state_shapes() const {
  if (local_) return LocalState(*local_, optimizer_->state()).shapes(group_->size());
  if (sharded_ == nullptr) return optimizer_->state();
  std::vector<nn::StoredParameter> shapes;
  for (const SpreadState& each : spread_state()) {
    const dist::NamedTensor& parameter = sharded_->trained(each.parameter);
    const Dims sizes = optimizer_->state_sizes(each.name, {parameter.name, parameter.tensor});
    shapes.push_back({stored_name(each), empty(sizes, {DType::kF32, kMeta})});
  }
  return shapes;
}

std::vector<Trainer::SpreadState> Trainer::spread_state() const {
  std::vector<SpreadState> spread;
  for (const std::string& name : optimizer_->state_names()) {
    for (size_t i = 0; i < sharded_->trained_count(); ++i) {
      const dist::NamedTensor& parameter = sharded_->trained(i);
      if (optimizer_->keeps_state(name, {parameter.name, parameter.tensor})) {
        spread.push_back({name, i, optimizer_->state_owner(name, i)});
      }
    }
  }
  return spread;
}

std::vector<Tensor> Trainer::own_parts() {
  std::vector<Tensor> parts;
  for (const dist::ShardRun& each : own_runs()) parts.push_back(each.values);
  for (const nn::StoredParameter& each : optimizer_->state()) {
    parts.push_back(each.tensor.view({-1}));
  }
  return parts;
}

/// Takes what was carried, where that is this rank's part of the model.
void Trainer::take_parts(Legacy& legacy) {
  const NoGradGuard no_grad;
  if (legacy.part == part()) {
    const std::vector<Tensor> own = own_parts();
    LS_ASSERT(own.size() == legacy.parts.size());
    for (size_t i = 0; i < own.size(); ++i) own[i].copy_(legacy.parts[i]);
    parts_written();
    optimizer_->set_steps(legacy.updates);
  }
  legacy.parts.clear();
}

std::string Trainer::stored_name(const SpreadState& spread) const {
  return spread.name + "." + sharded_->trained(spread.parameter).name;
}

Trainer::OwnState Trainer::own_state() const {
  OwnState own;
  for (nn::StoredParameter& each : optimizer_->state()) {
    own.emplace(std::move(each.name), std::move(each.tensor));
  }
  return own;
}

const Trainer::CollectedState& Trainer::collected_state() {
  if (collected_) return *collected_;
  collected_.emplace();
  collected_->weights = task_->model().stored_parameters();
  if (sharded_ == nullptr) {
    collected_->optimizer = optimizer_->state();
  } else {
    collected_->spread = spread_state();
    collected_->own = own_state();
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
  const SpreadState& spread = state.spread[number];
  const auto own = state.own.find(stored_name(spread));
  return collect(spread, own == state.own.end() ? Tensor() : own->second);
}

Tensor Trainer::collect(const SpreadState& spread, const Tensor& own) const {
  if (!spread.owner) {
    std::vector<Tensor> parts(sharded_->parameters().size());
    const int64_t part = sharded_->part_of(spread.parameter);
    if (part >= 0) parts[static_cast<size_t>(part)] = own;
    return sharded_->collect_parts(spread.parameter, parts);
  }
  const int rank = group_->rank();
  if (*spread.owner == 0) return rank == 0 ? own : Tensor();
  if (rank == *spread.owner) group_->send(own.to(device()), 0).wait();
  if (rank != 0) return {};
  const dist::NamedTensor& parameter = sharded_->trained(spread.parameter);
  const Tensor whole =
      empty(optimizer_->state_sizes(spread.name, {parameter.name, parameter.tensor}),
            {DType::kF32, device()});
  group_->recv(whole, *spread.owner).wait();
  return whole;
}

std::vector<KeptRun> Trainer::weight_runs(int rank) const {
  const std::vector<nn::StoredParameter> stored = task_->model().stored_parameters();
  std::unordered_map<const TensorImpl*, size_t> number_of;
  for (size_t i = 0; i < stored.size(); ++i) number_of.emplace(stored[i].tensor.impl(), i);
  std::vector<KeptRun> kept;
  for (const dist::ShardRun& run : sharded_->runs(rank)) {
    const auto same = number_of.find(run.parameter.tensor.impl());
    if (same == number_of.end()) continue;
    kept.push_back({same->second, run.first, run.end, run.values});
  }
  return kept;
}

std::optional<KeptRun> Trainer::run_of(size_t number, const SpreadState& spread, int shard) const {
  if (spread.owner) {
    if (*spread.owner != shard) return std::nullopt;
    const dist::NamedTensor& parameter = sharded_->trained(spread.parameter);
    const Dims sizes = optimizer_->state_sizes(spread.name, {parameter.name, parameter.tensor});
    return KeptRun{number, 0, count_elements(sizes), {}};
  }
  const auto slice = sharded_->slice_of(spread.parameter, shard);
  if (!slice) return std::nullopt;
  return KeptRun{number, slice->first, slice->end, {}};
}

std::vector<KeptRun> Trainer::optimizer_runs(int rank) const {
  const bool own = rank == group_->rank();
  const int shard = rank % sharded_->shard_size();
  const OwnState state = own ? own_state() : OwnState();
  const std::vector<SpreadState> spread = spread_state();
  std::vector<KeptRun> kept;
  for (size_t i = 0; i < spread.size(); ++i) {
    std::optional<KeptRun> run = run_of(i, spread[i], shard);
    if (!run) continue;
    if (own) run->values = state.at(stored_name(spread[i])).view({-1});
    kept.push_back(std::move(*run));
  }
  return kept;
}

std::vector<KeptRun> Trainer::state_runs(int rank) {
  if (local_) return local_runs(rank);
  return sharded_ == nullptr ? equal_runs(rank) : sharded_runs(rank);
}

/// Weights are those that the ranks share, and are written by the ranks in turn.
std::vector<KeptRun> Trainer::local_runs(int rank) {
  const int self = group_->rank(), world = group_->size();
  if (rank == self) local_->settle();
  std::unordered_map<const TensorImpl*, Tensor> shared;
  for (size_t i = 0; i < local_->parameters().size(); ++i) {
    shared.emplace(local_->parameters()[i].tensor.impl(), local_->global(i));
  }
  std::vector<KeptRun> runs;
  const std::vector<nn::StoredParameter> stored = task_->model().stored_parameters();
  for (size_t i = 0; i < stored.size(); ++i) {
    const Tensor& tensor = stored[i].tensor;
    if (i % static_cast<size_t>(world) != static_cast<size_t>(rank) || tensor.numel() == 0)
      continue;
    runs.push_back({i, 0, tensor.numel(), {}});
    if (rank != self) continue;
    const auto found = shared.find(tensor.impl());
    runs.back().values = (found == shared.end() ? tensor : found->second).reshape({-1});
  }
  for (KeptRun& run : LocalState(*local_, optimizer_->state()).written(rank, world, self)) {
    run.tensor += stored.size();
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Of a state that every rank has, equal parts: as if all tensors were one unit of a sharded model.
std::vector<KeptRun> Trainer::equal_runs(int rank) {
  const CollectedState& state = collected_state();
  std::vector<Tensor> tensors;
  for (const nn::StoredParameter& each : state.weights) tensors.push_back(each.tensor);
  for (const nn::StoredParameter& each : state.optimizer) tensors.push_back(each.tensor);
  std::vector<int64_t> elements;
  for (const Tensor& each : tensors) elements.push_back(each.numel());
  const dist::ShardLayout layout(elements, group_ == nullptr ? 1 : group_->size());
  const bool own = group_ == nullptr || rank == group_->rank();
  std::vector<KeptRun> runs;
  for (const dist::ShardSlice& each : layout.slices(rank)) {
    if (each.size() == 0) continue;
    runs.push_back({each.parameter, each.first, each.end, {}});
    if (own) {
      runs.back().values = slice(tensors[each.parameter].reshape({-1}), 0, each.first, each.end);
    }
  }
  return runs;
}

std::vector<KeptRun> Trainer::sharded_runs(int rank) {
  const CollectedState& state = collected_state();
  std::vector<KeptRun> kept = weight_runs(rank);
  for (KeptRun& run : optimizer_runs(rank)) {
    run.tensor += state.weights.size();
    kept.push_back(std::move(run));
  }
  // Replicas keep the same runs; each writes its share of them.
  const auto replicas = static_cast<size_t>(group_->size() / sharded_->shard_size());
  const auto replica = static_cast<size_t>(rank / sharded_->shard_size());
  std::vector<KeptRun> runs;
  for (size_t i = replica; i < kept.size(); i += replicas) {
    if (kept[i].end > kept[i].first) runs.push_back(std::move(kept[i]));
  }
  if (rank != 0) return runs;
  // What is not spread, such as running statistics.
  std::unordered_set<const TensorImpl*> parameters;
  for (const Tensor& each : task_->model().parameters()) parameters.insert(each.impl());
  for (size_t i = 0; i < state.weights.size(); ++i) {
    const Tensor& tensor = state.weights[i].tensor;
    if (parameters.contains(tensor.impl()) || tensor.numel() == 0) continue;
    runs.push_back({i, 0, tensor.numel(), {}});
    if (group_->rank() == 0) runs.back().values = tensor.reshape({-1});
  }
  return runs;
}

}  // namespace lockstep::train
