#include "train/run/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "configs/cluster.pb.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "train/gradient_options.h"
#include "train/run/plan.h"
#include "train/run/planned_work.h"

namespace lockstep::train {

namespace {

using config::ParallelConfig;

dist::Link link_of(const config::LinkConfig& link, int64_t count = 1) {
  dist::Link result{.latency = link.latency_us() * 1e-6};
  if (link.has_gbit_per_second()) {
    result.bytes_per_second =
        link.gbit_per_second() * 1e9 / 8 * link.efficiency() * static_cast<double>(count);
  }
  return result;
}

dist::Collectives collectives_of(config::ClusterConfig::Collectives collectives) {
  switch (collectives) {
    case config::ClusterConfig::DIRECT:
      return dist::Collectives::kDirect;
    case config::ClusterConfig::RING:
      return dist::Collectives::kRing;
    case config::ClusterConfig::HIERARCHICAL:
      return dist::Collectives::kHierarchical;
    default:
      return dist::Collectives::kRingOrTree;
  }
}

/// Bytes that an update of all parameters reads and writes.
double update_bytes(const RunPlan& plan) {
  const auto changed = static_cast<double>(plan.parameter_bytes + plan.optimizer_bytes);
  return 2 * changed + static_cast<double>(plan.parameter_bytes);
}

/// The counted operations in seconds of a rank. `plan` is that of one rank.
dist::StepWork timed(const dist::StepWork& counted, const config::ClusterConfig& cluster,
                     const RunPlan& plan) {
  if (cluster.has_peak()) {
    const config::PeakCompute& peak = cluster.peak();
    dist::StepWork work = scaled(counted, 1 / (peak.tflops() * 1e12 * peak.efficiency()));
    if (peak.memory_gbyte_per_second() > 0) {
      work.update = update_bytes(plan) / (peak.memory_gbyte_per_second() * 1e9);
    }
    return work;
  }
  const config::MeasuredCompute& measured = cluster.measured();
  return timed_work(counted, {.step = measured.step_ms() * 1e-3,
                              .update = measured.update_ms() * 1e-3,
                              .first_ready = measured.first_ready_ms() * 1e-3});
}

/// Simulates the strategy that `config` has.
class Simulation {
 public:
  Simulation(const config::RunConfig& config, const dist::StepWork& work,
             const dist::Cluster& cluster)
      : work_(work),
        cluster_(cluster),
        copies_(config.parallel().strategy() == ParallelConfig::DDP || cluster.ranks() == 1),
        sharding_(sharding_work(config, cluster.ranks())),
        buckets_{.first_bytes = bytes_of_mib(config.parallel().first_bucket_mib()),
                 .bytes = bytes_of_mib(config.parallel().bucket_mib())} {
    if (!config.parallel().has_local_sgd()) return;
    const config::LocalSgd& local = config.parallel().local_sgd();
    averaging_ = {.inner_steps = local.inner_steps(),
                  .fragments = local.fragments(),
                  .delay_steps = local.delay_steps(),
                  .bits = static_cast<int>(local.bits())};
  }

  dist::SimulatedStep step() const { return step(work_, cluster_); }
  dist::StepLimit limit() const {
    return dist::limit_of_step(work_, cluster_,
                               [this](const dist::StepWork& work, const dist::Cluster& cluster) {
                                 return step(work, cluster).seconds;
                               });
  }

 private:
  dist::SimulatedStep step(const dist::StepWork& work, const dist::Cluster& cluster) const {
    if (averaging_) return dist::simulate_local_steps(work, cluster, *averaging_);
    return copies_ ? dist::simulate_copies(work, cluster, buckets_)
                   : dist::simulate_sharded(work, cluster, sharding_);
  }

  const dist::StepWork& work_;
  const dist::Cluster& cluster_;
  bool copies_;
  dist::ShardingWork sharding_;
  dist::BucketLimits buckets_;
  std::optional<dist::AveragingWork> averaging_;
};

/// Makes the forecasts of one config and cluster.
class Forecaster {
 public:
  Forecaster(const config::RunConfig& config, const config::ClusterConfig& cluster, int64_t ranks)
      : config_(config),
        ranks_(ranks),
        cluster_(cluster_of(cluster, ranks)),
        memory_limit_(std::llround(cluster.memory_gib() * (1 << 30))),
        one_(plan_with(ParallelConfig::DDP, 0)),
        work_(timed(count_work(config, ranks), cluster, one_)) {}

  const RunPlan& copies() const { return one_; }
  int64_t hosts() const { return cluster_.hosts; }
  int64_t memory_limit() const { return memory_limit_; }

  StrategyForecast forecast(ParallelConfig::Strategy strategy, int64_t shard_size) const {
    return forecast({.strategy = strategy, .shard_size = shard_size}, with(strategy, shard_size));
  }
  /// With the config's local steps.
  StrategyForecast forecast_local_steps() const {
    return forecast({.strategy = ParallelConfig::DDP, .local_steps = true}, config_);
  }

 private:
  StrategyForecast forecast(StrategyForecast result, const config::RunConfig& config) const {
    try {
      const bool is_one = result.strategy == ParallelConfig::DDP && !result.local_steps;
      const RunPlan plan = is_one ? one_ : plan_run(config, ranks_);
      result.memory_bytes = plan.peak_bytes + missing_state(plan, config);
      result.fits = memory_limit_ == 0 || result.memory_bytes <= memory_limit_;
      const Simulation simulation(config, work_, cluster_);
      result.step = simulation.step();
      result.limit = simulation.limit();
    } catch (const ConfigError& error) {
      result.problem = error.what();
      result.fits = false;
    }
    return result;
  }
  config::RunConfig with(ParallelConfig::Strategy strategy, int64_t shard_size) const {
    config::RunConfig config = config_;
    config.mutable_parallel()->set_strategy(strategy);
    config.mutable_parallel()->set_shard_size(shard_size);
    config.mutable_parallel()->clear_local_sgd();
    return config;
  }
  /// Optimizer state of the first rank that the last one, of which `plan` is, does not have: with
  /// many ranks its part of a unit may be padding.
  int64_t missing_state(const RunPlan& plan, const config::RunConfig& config) const {
    if (config.parallel().strategy() == ParallelConfig::DDP || ranks_ == 1) return 0;
    const int64_t parts =
        config.parallel().shard_size() > 0 ? config.parallel().shard_size() : ranks_;
    return std::max<int64_t>(0, one_.optimizer_bytes / parts - plan.optimizer_bytes);
  }
  RunPlan plan_with(ParallelConfig::Strategy strategy, int64_t shard_size) const {
    return plan_run(with(strategy, shard_size), ranks_);
  }

  const config::RunConfig& config_;
  int64_t ranks_;
  dist::Cluster cluster_;
  int64_t memory_limit_;
  RunPlan one_;  ///< of copies of the model
  dist::StepWork work_;
};

/// HYBRID_SHARD with the config's shard size, or the smallest one that fits.
void add_hybrid(const Forecaster& forecaster, const config::RunConfig& config, int64_t local,
                Forecast& forecast) {
  const int64_t wanted = config.parallel().shard_size();
  // One rank alone would keep copies, as DDP does.
  int64_t size = wanted > 0 ? wanted : std::max<int64_t>(local, 2);
  while (size < forecast.ranks && forecast.ranks % size == 0) {
    StrategyForecast found = forecaster.forecast(ParallelConfig::HYBRID_SHARD, size);
    const bool is_last = wanted > 0 || found.fits || !found.problem.empty();
    const int64_t next = 2 * size;
    if (is_last || next >= forecast.ranks || forecast.ranks % next != 0) {
      forecast.strategies.push_back(std::move(found));
      return;
    }
    size = next;
  }
}

void check_can_forecast(const config::RunConfig& config) {
  LS_CHECK(
      config.parallel().communication_hook_case() == ParallelConfig::COMMUNICATION_HOOK_NOT_SET,
      ConfigError,
      "[plan] --simulate: expected a config without a communication hook, whose sizes and "
      "computation are not predicted. Leave it out.");
}

}  // namespace

std::string StrategyForecast::name() const {
  const auto kind = static_cast<ParallelConfig::Strategy>(strategy);
  const std::string& text = ParallelConfig::Strategy_Name(kind);
  if (local_steps) return text + ", local_sgd";
  return shard_size > 0 ? fmt::format("{} of {}", text, shard_size) : text;
}

std::string StrategyForecast::limit_name() const {
  if (!problem.empty()) return "config";
  return fits ? dist::name(limit) : "memory";
}

double Forecast::tokens_per_second(const StrategyForecast& strategy) const {
  if (strategy.step.seconds <= 0) return 0;
  return static_cast<double>(tokens_per_step) / strategy.step.seconds;
}

double Forecast::utilization(const StrategyForecast& strategy) const {
  if (peak_flops <= 0 || strategy.step.seconds <= 0) return 0;
  return flops_per_step / (strategy.step.seconds * peak_flops);
}

dist::Cluster cluster_of(const config::ClusterConfig& cluster, int64_t ranks) {
  const int64_t local = cluster.ranks_per_host();
  const int64_t all = cluster.hosts() * local;
  LS_CHECK(ranks >= 1 && ranks <= all, ConfigError,
           "[plan] --ranks: expected 1 to {}, the ranks of the cluster ({} hosts of {}), got {}.",
           all, cluster.hosts(), local, ranks);
  LS_CHECK(ranks <= local || ranks % local == 0, ConfigError,
           "[plan] --ranks: expected at most {}, the ranks of a host, or a multiple of it, got {}.",
           local, ranks);
  return {.hosts = std::max<int64_t>(1, ranks / local),
          .ranks_per_host = std::min(ranks, local),
          .inside = link_of(cluster.inside()),
          .between = link_of(cluster.between(), cluster.links_per_host()),
          .hosts_per_pod = cluster.hosts_per_pod(),
          .oversubscription = cluster.oversubscription(),
          .congestion = cluster.congestion(),
          .collectives = collectives_of(cluster.collectives()),
          .per_operation = cluster.operation_us() * 1e-6,
          .cpu_per_byte = cluster.cpu_seconds_per_gb() * 1e-9,
          .stragglers = {.deviation = cluster.stragglers().deviation(),
                         .slow_hosts = cluster.stragglers().slow_hosts(),
                         .slow_factor = cluster.stragglers().slow_factor()}};
}

Forecast forecast_step(const config::RunConfig& config, const config::ClusterConfig& cluster,
                       int64_t ranks) {
  check_can_forecast(config);
  const Forecaster forecaster(config, cluster, ranks);
  Forecast forecast{.ranks = ranks,
                    .hosts = forecaster.hosts(),
                    .parameters = forecaster.copies().parameters,
                    .tokens_per_step = forecaster.copies().tokens_per_step(),
                    .flops_per_step = forecaster.copies().flops_per_step(),
                    .memory_limit = forecaster.memory_limit(),
                    .strategies = {}};
  if (cluster.has_peak()) {
    forecast.peak_flops = cluster.peak().tflops() * 1e12 * static_cast<double>(ranks);
  }
  forecast.strategies.push_back(forecaster.forecast(ParallelConfig::DDP, 0));
  if (ranks > 1) {
    for (const auto strategy : {ParallelConfig::SHARD_OPTIMIZER, ParallelConfig::SHARD_GRAD_OP,
                                ParallelConfig::FULL_SHARD}) {
      forecast.strategies.push_back(forecaster.forecast(strategy, 0));
    }
    if (config.parallel().has_local_sgd()) {
      forecast.strategies.push_back(forecaster.forecast_local_steps());
    }
    add_hybrid(forecaster, config, std::min(ranks, cluster.ranks_per_host()), forecast);
  }
  std::ranges::stable_sort(forecast.strategies, {}, [](const StrategyForecast& each) {
    return std::tuple(!each.problem.empty(), !each.fits, each.step.seconds);
  });
  return forecast;
}

}  // namespace lockstep::train
