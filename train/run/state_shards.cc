#include "train/run/state_shards.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/ops/factory/factory.h"
#include "train/local_steps.h"

namespace lockstep::train {

std::unordered_set<size_t> buffers_among(Trainer& trainer) {
  std::unordered_set<const TensorImpl*> changed;
  for (const nn::NamedParameter& each : trainer.task().model().named_buffers()) {
    changed.insert(each.tensor.impl());
  }
  std::unordered_set<size_t> numbers;
  const std::vector<nn::StoredParameter> stored = trainer.task().model().stored_parameters();
  for (size_t i = 0; i < stored.size(); ++i) {
    if (changed.contains(stored[i].tensor.impl())) numbers.insert(i);
  }
  return numbers;
}

StateShards::StateShards(int rank, int world, std::string strategy)
    : rank_(rank), strategy_(std::move(strategy)), runs_(static_cast<size_t>(world)) {}

StateShards::StateShards(Trainer& trainer, int rank, int world, std::string strategy)
    : StateShards(rank, world, std::move(strategy)) {
  const NoGradGuard no_grad;
  trainer.give_up_next();
  trainer.scatter_weights();
  list_tensors(trainer);
  for (int each = 0; each < world; ++each) {
    if (rank == 0 || each == rank) list_runs(trainer, each);
  }
}

StateShards StateShards::without_values(Trainer& trainer, int rank, int world,
                                        std::string strategy) {
  const NoGradGuard no_grad;
  StateShards shards(rank, world, std::move(strategy));
  shards.list_tensors(trainer);
  for (int each = 0; each < world; ++each) shards.list_runs(trainer, each);
  shards.replace(std::vector<Tensor>(shards.own().size()));
  return shards;
}

void StateShards::list_tensors(Trainer& trainer) {
  tensors_ = trainer.task().model().stored_parameters();
  weights_ = tensors_.size();
  for (nn::StoredParameter& each : trainer.optimizer_state_shapes()) {
    tensors_.push_back(std::move(each));
  }
}

void StateShards::list_runs(Trainer& trainer, int of) {
  std::vector<KeptRun>& runs = runs_[static_cast<size_t>(of)];
  runs = trainer.state_runs(of);
  std::ranges::stable_sort(runs, {}, &KeptRun::tensor);
}

std::string StateShards::strategy_of(const config::RunConfig& config, const Trainer& trainer) {
  return trainer.takes_local_steps()
             ? kLocalSgd
             : config::ParallelConfig::Strategy_Name(config.parallel().strategy());
}

ShardIndex StateShards::index() const {
  ShardIndex index{.world = world(), .strategy = strategy_, .weights = {}, .optimizer = {}};
  std::vector<ShardedTensor*> entries;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ShardedTensor& entry = (i < weights_ ? index.weights : index.optimizer)[tensors_[i].name];
    const IntList sizes = tensors_[i].tensor.sizes();
    entry.dtype = tensors_[i].tensor.dtype();
    entry.shape = {sizes.begin(), sizes.end()};
    entry.transposed = tensors_[i].transposed;
    entries.push_back(&entry);
  }
  for (int rank = 0; rank < world(); ++rank) {
    for (const KeptRun& run : runs_[static_cast<size_t>(rank)]) {
      entries[run.tensor]->pieces.push_back({rank, run.first, run.end});
    }
  }
  for (ShardedTensor* entry : entries) std::ranges::sort(entry->pieces, {}, &ShardPiece::first);
  return index;
}

std::vector<nn::StoredParameter> StateShards::pieces(std::string_view what, int rank) const {
  std::vector<nn::StoredParameter> found;
  for (const KeptRun& run : runs_[static_cast<size_t>(rank)]) {
    if ((run.tensor < weights_) != (what == kWeightShards)) continue;
    const nn::StoredParameter& tensor = tensors_[run.tensor];
    found.push_back({tensor.name, run.values.defined() ? run.values
                                                       : empty({run.end - run.first},
                                                               {tensor.tensor.dtype(), kMeta})});
  }
  return found;
}

void StateShards::replace(const std::vector<Tensor>& values) {
  std::vector<KeptRun>& own = runs_[static_cast<size_t>(rank_)];
  for (size_t i = 0; i < own.size(); ++i) own[i].values = values[i];
}

}  // namespace lockstep::train
