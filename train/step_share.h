#pragma once

#include <cstdint>

#include "dist/collectives/leaf_deal.h"

namespace lockstep::config {
class TrainConfig;
}
namespace lockstep::dist {
class ProcessGroup;
}

namespace lockstep::train {

/// The part of every step that a rank computes.
struct StepShare {
  int64_t first_sample = 0;  ///< index in the batch
  int64_t micro_batch_size = 1;
  int64_t micro_batches = 1;
  /// Number of leaves of the gradient's summation tree; each is the sum of equally many
  /// micro-batches.
  int64_t leaves = 1;
  int64_t first_leaf = 0;  ///< index over all ranks; 0 if ranks do not have whole leaves
  /// Index of the first micro-batch in the step, over all ranks: random numbers depend on it.
  int64_t first_micro_batch = 0;

  /// Whether this rank's micro-batch i is the first of a leaf.
  bool begins_leaf(int64_t i) const { return i % (micro_batches / leaves) == 0; }
  bool ends_step(int64_t i) const { return i + 1 == micro_batches; }
  int64_t end_sample() const { return first_sample + micro_batches * micro_batch_size; }
};

/// Divides a step among `size` ranks. If there are at least as many leaves as ranks, each rank gets
/// whole leaves, as evenly as possible, so that results depend on the number of ranks by no more
/// than the order of sums. Otherwise each gets the same number of samples, in smaller micro-batches
/// than the config's if necessary. Throws ConfigError if neither is possible.
StepShare share_of_step(const config::TrainConfig& train, int64_t rank, int64_t size);
/// The leaves that `deal` gives rank `rank`, of a step of `micro_batches` micro-batches, which must
/// be a multiple of the number of leaves.
StepShare share_of_deal(const dist::LeafDeal& deal, int rank, int64_t micro_batches,
                        int64_t micro_batch_size);
/// Whether all ranks do the same number of micro-batches in a step.
bool has_even_shares(const config::TrainConfig& train, int64_t size);
/// The share of this process's rank in `group`; the whole step if it is null.
StepShare share_of_step(const config::TrainConfig& train, const dist::ProcessGroup* group);

}  // namespace lockstep::train
