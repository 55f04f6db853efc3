#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/local/local_sgd.h"
#include "nn/module.h"
#include "train/weights/rank_reading.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// ShardIndex::strategy of checkpoints whose ranks took local steps.
inline constexpr const char* kLocalSgd = "LOCAL_SGD";

/// Whether the ranks of a run on `group`, which may be null, take steps of their own
/// (parallel.local_sgd).
bool takes_local_steps(const config::RunConfig& config, const dist::ProcessGroup* group);

/// What averages the ranks' steps, or null where they take none of their own. Model and group must
/// outlive it. Collective.
std::unique_ptr<dist::LocalSgd> make_local_sgd(const config::RunConfig& config,
                                               const nn::Module& model, dist::ProcessGroup* group);

/// While alive, the model computes with the values that all ranks share. `local` may be null.
class SharedWeights {
 public:
  explicit SharedWeights(dist::LocalSgd* local) : local_(local) {
    if (local_ != nullptr) local_->exchange();
  }
  ~SharedWeights() {
    if (local_ != nullptr) local_->exchange();
  }
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

 private:
  dist::LocalSgd* local_;
};

/// The state of ranks that take local steps, as the optimizer's part of a checkpoint holds it:
/// "rank0.parameter.NAME", "rank0.exp_avg.NAME", ... of each rank, then what they share. The
/// checkpoint's weights are the values that the ranks share. Must not outlive what it is made of.
class LocalState {
 public:
  /// Of the calling rank. `optimizer`: Optimizer::state.
  LocalState(const dist::LocalSgd& local, const std::vector<nn::StoredParameter>& optimizer);

  /// Names and shapes of the state of `world` ranks; on meta.
  std::vector<nn::StoredParameter> shapes(int world) const;
  /// What rank `rank` of `world` writes of `shapes(world)`: all ranks together each element once.
  /// With values if it is `self`.
  std::vector<KeptRun> written(int rank, int world, int self) const;
  /// What rank `rank` reads of a state that `world` ranks wrote, where these may be fewer or more
  /// than there are now: rank r that of rank r modulo `world`. With values if it is `self`.
  std::vector<KeptRun> read(int rank, int world, int self) const;

 private:
  struct Item {
    std::string name;
    Tensor tensor;
    std::optional<size_t> part_of;  ///< a rank has only its part of this parameter
  };
  KeptRun run(size_t number, const Item& item, int rank, int self) const;
  std::vector<KeptRun> runs(int rank, int from, int world, int self, bool all_shared) const;

  const dist::LocalSgd& local_;
  std::vector<Item> of_rank_;
  std::vector<Item> shared_;
};

}  // namespace lockstep::train
