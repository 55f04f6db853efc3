// The part of Trainer that says what state a rank has, and gathers, collects and distributes what
// is spread over the ranks.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/shard_layout.h"
#include "dist/group/agreement.h"
#include "nn/language_model.h"
#include "train/trainer.h"
#include "train/weights/multiplier_files.h"

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
  for (const std::string& name : optimizer_->state_names()) {
    for (const nn::NamedParameter& each : task_->model().named_parameters()) {
      if (!each.tensor.requires_grad()) continue;
      shapes.push_back({name + "." + each.name, empty(each.tensor.sizes(), {DType::kF32, kMeta})});
    }
  }
  return shapes;
}

std::vector<Tensor> Trainer::own_parts() {
  std::vector<Tensor> parts;
  for (const dist::ShardRun& each : sharded_->runs(group_->rank())) parts.push_back(each.values);
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

std::vector<KeptRun> Trainer::optimizer_runs(int rank) const {
  std::vector<Tensor> trained;  // in the order of the shapes of each name
  for (const Tensor& each : task_->model().parameters()) {
    if (each.requires_grad()) trained.push_back(each);
  }
  const std::vector<dist::ShardRun> all = sharded_->runs(rank);
  std::unordered_map<const TensorImpl*, const dist::ShardRun*> run_of;
  for (const dist::ShardRun& each : all) run_of.emplace(each.parameter.tensor.impl(), &each);
  const bool own = rank == group_->rank();
  std::vector<KeptRun> kept;
  for (size_t name = 0; name < optimizer_->state_names().size(); ++name) {
    const std::vector<Tensor> parts = own ? parts_of_state(name) : std::vector<Tensor>();
    size_t part = 0;
    for (size_t i = 0; i < trained.size(); ++i) {
      const auto found = run_of.find(trained[i].impl());
      if (found == run_of.end()) continue;
      const dist::ShardRun& run = *found->second;
      kept.push_back(
          {name * trained.size() + i, run.first, run.end, own ? parts[part].view({-1}) : Tensor()});
      ++part;
    }
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

void Trainer::read_later(const StateFiles& files) {
  if (!spreads_state()) return;
  if (!files.weights.empty()) {
    (void)TensorRanges::of_weights(files.weights, task_->model().stored_parameters());
  }
  if (!files.optimizer.empty()) {
    const auto shapes = files.ranks > 0
                            ? LocalState(*local_, optimizer_->state()).shapes(files.ranks)
                            : optimizer_->state();
    (void)TensorRanges::of_tensors(files.optimizer,
                                   is_sharded() ? optimizer_state_shapes() : shapes);
  }
  files_to_read_ = files;
}

void Trainer::read_state(const StateFiles& files) {
  files_to_read_ = {};
  collected_.reset();
  if (!spreads_state()) return;
  const NoGradGuard no_grad;
  if (local_) return read_local_state(files);
  scatter_weights();
  if (!files.weights.empty()) read_weights(files.weights);
  if (!files.optimizer.empty()) read_optimizer_state(files.optimizer);
}

void Trainer::read_weights(const std::filesystem::path& path) {
  const std::vector<nn::StoredParameter> stored = task_->model().stored_parameters();
  const std::optional<TensorRanges> files = read_on_ranks(
      *group_,
      [&] {
        TensorRanges opened = TensorRanges::of_weights(path, stored);
        if (group_->rank() == 0) opened.verify();
        return opened;
      },
      [&](int rank) { return weight_runs(rank); });
  convert_multipliers(path);
  sharded_->mark_changed();
  // What is not spread: rank 0 has read it, and gives it to the others.
  std::unordered_set<const TensorImpl*> parameters;
  for (const Tensor& each : task_->model().parameters()) parameters.insert(each.impl());
  for (size_t i = 0; i < stored.size(); ++i) {
    const Tensor& tensor = stored[i].tensor;
    if (parameters.contains(tensor.impl())) continue;
    if (files) files->read_whole(i, tensor);
    dist::broadcast_values(*group_, tensor);
  }
}

void Trainer::convert_multipliers(const std::filesystem::path& path) {
  const auto* const language = dynamic_cast<const nn::LanguageModel*>(&task_->model());
  if (language == nullptr) return;
  // Only rank 0 must see the folder.
  const nn::Mup& own = language->mup();
  const nn::Mup from = group_->rank() == 0 ? multipliers_of(path) : own;
  const std::vector<nn::MultipliedRows> rows = nn::changed_rows(*language, from, own);
  std::vector<double> factors;
  for (const nn::MultipliedRows& each : rows) factors.push_back(each.factor);
  if (factors.empty()) return;
  factors = dist::all_gather_values(*group_, factors).front();
  for (const dist::ShardRun& run : sharded_->runs(group_->rank())) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Tensor& parameter = rows[i].parameter;
      if (factors[i] == 1 || !run.parameter.tensor.is_same(parameter)) continue;
      const int64_t end = rows[i].rows * (parameter.numel() / parameter.size(0));
      if (end <= run.first) continue;
      slice(run.values, 0, 0, std::min(end, run.end) - run.first).mul_(factors[i]);
    }
  }
}

namespace {

/// What every rank reads of a list of tensors: all.
std::vector<KeptRun> whole_runs(const std::vector<nn::StoredParameter>& tensors) {
  std::vector<KeptRun> runs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].tensor.numel() == 0) continue;
    runs.push_back({i, 0, tensors[i].tensor.numel(), tensors[i].tensor.view({-1})});
  }
  return runs;
}

}  // namespace

void Trainer::read_local_state(const StateFiles& files) {
  const std::vector<nn::StoredParameter> stored = task_->model().stored_parameters();
  const std::vector<nn::StoredParameter> optimizer = optimizer_->state();
  (void)read_on_ranks(
      *group_,
      [&] {
        TensorRanges opened = TensorRanges::of_weights(files.weights, stored);
        if (group_->rank() == 0) opened.verify();
        return opened;
      },
      [&](int) { return whole_runs(stored); });
  local_->begin_anew();
  if (files.optimizer.empty()) return;
  if (files.ranks == 0) {
    (void)read_on_ranks(
        *group_, [&] { return TensorRanges::of_tensors(files.optimizer, optimizer); },
        [&](int) { return whole_runs(optimizer); });
    return;
  }
  const LocalState state(*local_, optimizer);
  (void)read_on_ranks(
      *group_, [&] { return TensorRanges::of_tensors(files.optimizer, state.shapes(files.ranks)); },
      [&](int rank) { return state.read(rank, files.ranks, group_->rank()); });
  local_->restore(position_.step);
}

void Trainer::read_optimizer_state(const std::filesystem::path& path) {
  const std::vector<nn::StoredParameter> shapes = optimizer_state_shapes();
  (void)read_on_ranks(
      *group_, [&] { return TensorRanges::of_tensors(path, shapes); },
      [&](int rank) { return optimizer_runs(rank); });
}

}  // namespace lockstep::train
