#pragma once

#include <cstdint>
#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"

namespace lockstep::train {

/// Makes every nn::BatchNorm2d of `model` train with the statistics of all ranks' samples
/// (dist/ddp/sync_batch_norm.h), in a subgroup of its own. Running statistics are then the same on
/// all ranks without RankStatistics, which is told nothing of them. Returns the number of layers.
///
/// All ranks of the group call it for the same model, run as many forward passes in training, and
/// backward in the same order. The group must outlive the model's use.
int64_t convert_sync_batchnorm(nn::Module& model, dist::ProcessGroup& group);

/// Throws ConfigError unless all ranks do as many micro-batches in a step, as the others' forward
/// passes wait for. `micro_batches`: of each rank.
void require_equal_shares(const std::vector<int64_t>& micro_batches);

}  // namespace lockstep::train
