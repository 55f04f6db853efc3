#pragma once

#include <cstdint>
#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"

namespace lockstep::train {

/// Makes every nn::BatchNorm2d of `model` train with the statistics of all ranks' samples
/// (dist/ddp/sync_batch_norm.h), through a subgroup created for it. Running statistics are then the
/// same on all ranks, so RankStatistics does not handle these layers. Returns the number of layers.
///
/// Collective. All ranks must pass the same model, run the same number of forward passes in
/// training, and run backward in the same order. The group must outlive the model's use.
int64_t convert_sync_batchnorm(nn::Module& model, dist::ProcessGroup& group);

/// Throws ConfigError unless all ranks do the same number of micro-batches in a step: each forward
/// pass waits for those of the other ranks. `micro_batches`: number per step, for each rank.
void require_equal_shares(const std::vector<int64_t>& micro_batches);

}  // namespace lockstep::train
