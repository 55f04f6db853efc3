#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/ddp/reducer.h"
#include "dist/fsdp/sharded_model.h"
#include "nn/module.h"
#include "train/step_share.h"

namespace lockstep::config {
class RunConfig;
}
namespace lockstep::dist {
struct NcclOptions;
}

namespace lockstep::train {

class EarlyUpdate;
class Optimizer;

/// Bytes of a size that a config gives in MiB, rounded up.
int64_t bytes_of_mib(double mib);

/// How a run's ranks use NCCL (parallel.nccl).
dist::NcclOptions nccl_options(const config::RunConfig& config);

/// What a run sums gradients of: the parameters that are not frozen. Throws DTypeError for
/// parameters that are not f32.
std::vector<dist::NamedTensor> trained_parameters(const nn::Module& model);

/// The reducer of a run's model. `group` may be null. With `early_update`, which may be null, the
/// parameters of each bucket are updated when its sums are there. Group and early update must
/// outlive the reducer. Throws ConfigError where reproducibility BITWISE is asked for with more
/// ranks than leaves, and what `trained_parameters` and Reducer throw.
std::unique_ptr<dist::Reducer> make_reducer(const config::RunConfig& config, const StepShare& share,
                                            const nn::Module& model, dist::ProcessGroup* group,
                                            EarlyUpdate* early_update = nullptr);

/// What the optimizer of a run updates: the trained parameters, or this rank's parts of those of a
/// sharded model, which may be null.
std::vector<nn::NamedParameter> updated_parameters(const nn::Module& model,
                                                   const dist::ShardedModel* sharded);

/// Lets the optimizer take its steps together with the other ranks where the config says so, or
/// where this rank keeps parts of `sharded`. Both may be null.
void share_updates(const config::RunConfig& config, Optimizer& optimizer,
                   const dist::ShardedModel* sharded, dist::ProcessGroup* group);

/// Whether a run on `group`, which may be null, spreads more than the data over its ranks.
bool is_sharded(const config::RunConfig& config, const dist::ProcessGroup* group);

/// The sharded model of a run whose parallel.strategy spreads more than the data over the ranks of
/// `group`; null for DDP, and without a group. Weights whose values were deferred
/// (nn/initial_values.h) get them unit by unit, unless `fills` is false; a model that has all of
/// them is left summoned.
/// Group and model must outlive it. Throws ConfigError for options that cannot be combined with it,
/// and what ShardedModel throws.
std::unique_ptr<dist::ShardedModel> make_sharded_model(const config::RunConfig& config,
                                                       const StepShare& share, nn::Module& model,
                                                       dist::ProcessGroup* group,
                                                       bool fills = true);

}  // namespace lockstep::train
