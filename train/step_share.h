#pragma once

#include <cstdint>

namespace lockstep::config {
class TrainConfig;
}
namespace lockstep::dist {
class ProcessGroup;
}

namespace lockstep::train {

/// Which part of every step a rank does.
struct StepShare {
  int64_t first_sample = 0;  ///< of the batch
  int64_t micro_batch_size = 1;
  int64_t micro_batches = 1;
  /// What the micro-batches are summed as, equal parts of them.
  int64_t leaves = 1;
  int64_t first_leaf = 0;  ///< of those of all ranks; 0 where ranks do not have whole leaves
  /// The number of the first micro-batch in the step, over all ranks: random numbers depend on it.
  int64_t first_micro_batch = 0;

  int64_t end_sample() const { return first_sample + micro_batches * micro_batch_size; }
};

/// Shares a step out to `size` ranks: whole leaves, as even as they go, while there are as many, so
/// that no result depends on the number of ranks by more than the order of sums; else equal numbers
/// of samples, in smaller micro-batches where the config's are larger than that. Throws ConfigError
/// where neither can be.
StepShare share_of_step(const config::TrainConfig& train, int64_t rank, int64_t size);
/// The share of a rank of `group`; all of the step where it is null.
StepShare share_of_step(const config::TrainConfig& train, const dist::ProcessGroup* group);

}  // namespace lockstep::train
