#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/simulate/simulated_step.h"
#include "dist/simulate/step_limit.h"

namespace lockstep::config {
class ClusterConfig;
class RunConfig;
}  // namespace lockstep::config

namespace lockstep::train {

/// What a strategy is predicted to take on a cluster; times in seconds.
struct StrategyForecast {
  int strategy = 0;          ///< config::ParallelConfig::Strategy
  int64_t shard_size = 0;    ///< of HYBRID_SHARD; else 0
  bool local_steps = false;  ///< copies that are averaged as parallel.local_sgd says
  /// Why the config cannot be trained with it; empty if it can. The rest is 0 then.
  std::string problem;
  dist::SimulatedStep step;
  dist::StepLimit limit = dist::StepLimit::kComputation;
  int64_t memory_bytes = 0;  ///< peak of RunPlan
  bool fits = true;          ///< in the memory of a rank

  /// "HYBRID_SHARD of 8", "DDP, local_sgd".
  std::string name() const;
  /// "link between hosts", or "memory" for one that does not fit.
  std::string limit_name() const;
};

/// Predicted steps of a config on a cluster.
struct Forecast {
  int64_t ranks = 1;
  int64_t hosts = 1;
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;  ///< samples where a sample is no sequence
  double flops_per_step = 0;    ///< of RunPlan
  /// Operations per second at the peak of all ranks; 0 if the cluster's computation was measured.
  double peak_flops = 0;
  int64_t memory_limit = 0;  ///< bytes of a rank; 0: none is known
  /// The fastest first; then those that do not fit, and those that cannot be.
  std::vector<StrategyForecast> strategies;

  double tokens_per_second(const StrategyForecast& strategy) const;
  /// Part of the peak that the model's operations take; 0 where it is not known.
  double utilization(const StrategyForecast& strategy) const;
};

/// The first hosts of a cluster with `ranks` ranks: part of one host, or whole hosts. Throws
/// ConfigError if there are none.
dist::Cluster cluster_of(const config::ClusterConfig& cluster, int64_t ranks);

/// Predicts a step of a resolved config on `ranks` ranks of a cluster, with each strategy, and with
/// parallel.local_sgd where the config has it, in the mean of many steps then. Of
/// HYBRID_SHARD the shard size of the config; without one that of a host, at least 2, and then
/// twice as many while they do not fit. Memory is that of plan_run, and so are the conditions.
/// Throws ConfigError if no strategy is possible.
Forecast forecast_step(const config::RunConfig& config, const config::ClusterConfig& cluster,
                       int64_t ranks);

}  // namespace lockstep::train
