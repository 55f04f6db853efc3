#include "train/run/state_shards.h"

#include <algorithm>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"

namespace lockstep::train {

StateShards::StateShards(Trainer& trainer, int rank, int world, std::string strategy)
    : rank_(rank), strategy_(std::move(strategy)), runs_(static_cast<size_t>(world)) {
  const NoGradGuard no_grad;
  trainer.give_up_next();
  trainer.scatter_weights();
  tensors_ = trainer.task().model().stored_parameters();
  weights_ = tensors_.size();
  for (nn::StoredParameter& each : trainer.optimizer_state_shapes()) {
    tensors_.push_back(std::move(each));
  }
  for (int each = 0; each < world; ++each) {
    if (rank != 0 && each != rank) continue;
    runs_[static_cast<size_t>(each)] = trainer.state_runs(each);
    std::ranges::stable_sort(runs_[static_cast<size_t>(each)], {}, &KeptRun::tensor);
  }
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
