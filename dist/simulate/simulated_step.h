#pragma once

#include <cstdint>
#include <vector>

#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/overlap.h"
#include "dist/fsdp/sharded_model.h"
#include "dist/simulate/cluster.h"
#include "dist/simulate/step_work.h"

namespace lockstep::dist {

/// A step as a simulation predicts it; times in seconds.
struct SimulatedStep {
  double seconds = 0;
  double compute = 0;     ///< of one rank, without communication
  double straggling = 0;  ///< by how much the slowest rank's computation takes longer
  /// Rest of the step: what communication adds, waiting and processor time.
  double exposed = 0;
  double sent_bytes = 0;  ///< by each rank
  BucketLimits buckets;   ///< of copies of the model; else 0
};

/// What `best_schedule` (dist/ddp/overlap.h) is given for a plan of buckets: times of the step of
/// the slowest rank, and what the reduction of each bucket over all ranks takes.
struct SimulatedBuckets {
  StepProfile step;
  LinkProfile link;
};
SimulatedBuckets simulate_buckets(const StepWork& work, const Cluster& cluster,
                                  const BucketLimits& limits);

/// Predicts a step of copies of the model, whose gradients are summed in buckets while backward
/// runs: the best schedule of dist/ddp/overlap.h. Limits of `wanted` that are 0 are those of the
/// plan that ends first (dist/ddp/bucket_choice.h has the same candidates).
SimulatedStep simulate_copies(const StepWork& work, const Cluster& cluster,
                              const BucketLimits& wanted = {});

/// How copies of the model that take steps of their own are averaged, as LocalSgdOptions
/// (dist/local/local_sgd.h).
struct AveragingWork {
  int64_t inner_steps = 100;
  int64_t fragments = 1;
  int64_t delay_steps = 0;
  int bits = 8;  ///< of a number on the way
};

/// Predicts a step of such copies in the mean of many: each step computes and sums the losses of
/// all ranks; fragments are sent one after the other over the link, and waited for at the steps
/// that dist/local/local_sgd.h says. What coding takes is not counted. Takes time in proportion to
/// the fragments.
SimulatedStep simulate_local_steps(const StepWork& work, const Cluster& cluster,
                                   const AveragingWork& averaging);

/// How a sharded model is divided and what is sent of it, as ShardOptions.
struct ShardingWork {
  ShardStrategy strategy = ShardStrategy::kFullShard;
  int64_t shard_size = 0;  ///< ranks that keep a whole model together; 0: all
  int64_t prefetch_bytes = 0;
  bool gathers_casts = false;   ///< matrices of units other than the root in two bytes
  bool reduces_halves = false;  ///< gradients in two bytes
  bool accumulates = false;     ///< gradients are summed over ranks in the last backward alone
};

/// Predicts a step of a sharded model: computation and communication take place in the order in
/// which dist/fsdp/sharded_model_step.cc begins them. Gathers and reductions of a group of ranks
/// use the link one after the other; a unit waits for its gather, and the third reduction for the
/// first. Takes time in proportion to units times micro-batches, whatever the number of ranks.
/// Throws ConfigError if shards do not fill whole hosts or equal parts of one.
SimulatedStep simulate_sharded(const StepWork& work, const Cluster& cluster,
                               const ShardingWork& sharding);

/// The ranks that keep different parts of a sharded model, and those that keep the same.
struct ShardGroups {
  GroupShape shards;
  GroupShape replicas;
};
/// Throws ConfigError as above.
ShardGroups shard_groups(const Cluster& cluster, int64_t shard_size);

}  // namespace lockstep::dist
