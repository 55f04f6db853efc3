#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "nn/module.h"
#include "train/trainer.h"
#include "train/weights/shard_index.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// How the tensors of a trainer's state are divided among the ranks that write a checkpoint, and
/// this rank's pieces of them. Made between two steps; not thread-safe.
class StateShards {
 public:
  /// Divides the state of `trainer` as Trainer::state_runs does among `world` ranks. Collects the
  /// pieces of all ranks on rank 0, of the others their own.
  StateShards(Trainer& trainer, int rank, int world, std::string strategy);
  /// How the state is divided, with the pieces of all ranks on any one and no values. Changes
  /// nothing of the trainer, so that it may be called after a step has thrown.
  static StateShards without_values(Trainer& trainer, int rank, int world, std::string strategy);

  /// What the manifest says; complete where the pieces of all ranks are.
  ShardIndex index() const;
  /// The pieces of a rank as tensors [end - first] under their tensors' names, for save_tensors:
  /// of the weights (kWeightShards) or of the optimizer's state (kOptimizerShards). They have
  /// memory where they are this rank's: that of the trainer, or the copies that `replace` gave.
  std::vector<nn::StoredParameter> pieces(std::string_view what, int rank) const;
  /// This rank's pieces, weights first.
  const std::vector<KeptRun>& own() const { return runs_[static_cast<size_t>(rank_)]; }
  /// Takes `values` for the values of `own()`, in the same order.
  void replace(const std::vector<Tensor>& values);

  /// The strategy that checkpoints of a run name.
  static std::string strategy_of(const config::RunConfig& config, const Trainer& trainer);

  int rank() const { return rank_; }
  int world() const { return static_cast<int>(runs_.size()); }

 private:
  StateShards(int rank, int world, std::string strategy);
  void list_tensors(Trainer& trainer);
  void list_runs(Trainer& trainer, int of);

  int rank_;
  std::string strategy_;
  std::vector<nn::StoredParameter> tensors_;  ///< weights, then the optimizer's state
  size_t weights_ = 0;                        ///< how many of them are weights
  std::vector<std::vector<KeptRun>> runs_;    ///< by rank
};

/// The numbers, among the tensors of a checkpoint, of those that forward passes change, such as
/// running statistics.
std::unordered_set<size_t> buffers_among(Trainer& trainer);

}  // namespace lockstep::train
