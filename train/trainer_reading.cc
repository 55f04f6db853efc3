// The part of Trainer that reads state that is spread over the ranks from files.

#include <algorithm>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/group/agreement.h"
#include "nn/language_model.h"
#include "train/trainer.h"
#include "train/weights/multiplier_files.h"

namespace lockstep::train {

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
