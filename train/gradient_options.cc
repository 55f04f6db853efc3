#include "train/gradient_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "dist/ddp/power_sgd.h"
#include "dist/fsdp/fully_shard.h"
#include "dist/group/agreement.h"
#include "dist/nccl/nccl_group.h"
#include "dist/rendezvous/socket.h"
#include "nn/block_model.h"
#include "train/optimizer/early_update.h"
#include "train/optimizer/optimizer.h"
#include "train/precision.h"

namespace lockstep::train {

namespace {

dist::CommunicationHook communication_hook(const config::ParallelConfig& parallel) {
  switch (parallel.communication_hook_case()) {
    case config::ParallelConfig::kBf16Compress:
      return dist::bf16_compress_hook();
    case config::ParallelConfig::kF16Compress:
      return dist::f16_compress_hook();
    case config::ParallelConfig::kPowerSgd:
      return dist::power_sgd_hook({.rank = parallel.power_sgd().rank(),
                                   .start_step = parallel.power_sgd().start_step(),
                                   .min_compression = parallel.power_sgd().min_compression()});
    case config::ParallelConfig::COMMUNICATION_HOOK_NOT_SET:
      return {};
  }
  return {};
}

/// ReducerOptions::tree_leaves of a run.
int64_t tree_leaves(const config::RunConfig& config, const dist::ProcessGroup* group) {
  if (config.reproducibility() != config::BITWISE) return 0;
  const int64_t leaves = config.train().leaves();
  LS_CHECK(group == nullptr || group->size() <= leaves, ConfigError,
           "[train] reproducibility: BITWISE needs a leaf of the step for each rank: expected at "
           "most {} ranks (train.leaves), got {}. Start fewer, or set train.leaves higher for "
           "all runs that are to be equal.",
           leaves, group->size());
  return leaves;
}

dist::ReducerOptions reducer_options(const config::RunConfig& config, const StepShare& share,
                                     const dist::ProcessGroup* group) {
  dist::ReducerOptions options;
  options.buckets = {.first_bytes = bytes_of_mib(config.parallel().first_bucket_mib()),
                     .bytes = bytes_of_mib(config.parallel().bucket_mib())};
  options.communication_hook = communication_hook(config.parallel());
  options.leaves = {share.first_leaf, share.first_leaf + share.leaves};
  options.tree_leaves = tree_leaves(config, group);
  return options;
}

/// Number of consecutive ranks of a host, the same on all hosts.
int64_t ranks_of_host(dist::ProcessGroup& group) {
  const std::vector<std::string> hosts =
      dist::all_gather_texts(group, dist::host_name(), dist::at_start(group));
  const auto end = std::ranges::find_if(hosts, [&](const auto& each) { return each != hosts[0]; });
  const auto count = static_cast<size_t>(end - hosts.begin());
  for (size_t i = 0; i < hosts.size(); ++i) {
    LS_CHECK(
        hosts[i] == hosts[i / count * count] && hosts.size() % count == 0, ConfigError,
        "[train] parallel.shard_size: ranks are not divided equally over hosts, one host after "
        "the other: {} has {} of them, and rank {} is on {}. Set the number of ranks that "
        "keep a model together.",
        hosts[0], count, i, hosts[i]);
  }
  return static_cast<int64_t>(count);
}

/// ShardOptions::shard_size of a run.
int shard_size(const config::RunConfig& config, dist::ProcessGroup& group) {
  const int64_t given = config.parallel().shard_size();
  if (config.parallel().strategy() != config::ParallelConfig::HYBRID_SHARD) {
    LS_CHECK(given == 0, ConfigError,
             "[train] parallel.shard_size: expected it with HYBRID_SHARD alone, got {} with {}.",
             given, config::ParallelConfig::Strategy_Name(config.parallel().strategy()));
    return 0;
  }
  const int64_t size = given > 0 ? given : ranks_of_host(group);
  LS_CHECK(group.size() % size == 0, ConfigError,
           "[train] parallel.shard_size: expected a divisor of the {} ranks, got {}.", group.size(),
           size);
  return static_cast<int>(size);
}

/// ShardOptions::gather_dtype of a run.
std::optional<DType> gather_dtype(const config::RunConfig& config) {
  if (config.parallel().gather_dtype() != config::ParallelConfig::AUTOCAST) return std::nullopt;
  switch (precision_of(config)) {
    case Precision::kBF16Mixed:
      return DType::kBF16;
    case Precision::kF16Mixed:
      return DType::kF16;
    case Precision::kF32:
      break;
  }
  return std::nullopt;
}

/// Why the config's other options do not go with a model that is spread over the ranks; empty if
/// they do.
std::string conflict_with_sharding(const config::RunConfig& config) {
  if (config.parallel().communication_hook_case() !=
      config::ParallelConfig::COMMUNICATION_HOOK_NOT_SET) {
    return "a communication hook compresses sums that every rank gets whole";
  }
  if (config.parallel().bf16_reduce() && config.reproducibility() == config::BITWISE) {
    return "parallel.bf16_reduce rounds gradients, which reproducibility BITWISE does not allow";
  }
  if (config.parallel().cpu_offload() && !is_asynchronous(parse_device(config.device()).type)) {
    return fmt::format(
        "parallel.cpu_offload moves the state from a device with memory of its own, and device is "
        "{}",
        config.device());
  }
  if (!config.optimizer().has_muon() && !config.optimizer().has_adafactor()) return "";
  const char* const rule = config.optimizer().has_muon() ? "muon" : "adafactor";
  if (config.optimizer().optimizer_in_backward()) {
    return fmt::format(
        "optimizer.{} puts matrices together from all ranks, which optimizer_in_backward does not "
        "wait for",
        rule);
  }
  if (config.parallel().has_elastic()) {
    return fmt::format(
        "a rank that is lost while optimizer.{} puts matrices together would leave the others with "
        "half an update, so that parallel.elastic could not go on",
        rule);
  }
  return "";
}

}  // namespace

int64_t bytes_of_mib(double mib) { return std::llround(std::ceil(mib * (1 << 20))); }

dist::NcclOptions nccl_options(const config::RunConfig& config) {
  dist::NcclOptions options;
  options.connect_at_start = true;
  options.check_values = environment_flag("LOCKSTEP_NCCL_CHECK_VALUES");
  if (!config.parallel().has_nccl()) return options;
  const config::NcclOptions& from = config.parallel().nccl();
  const auto set = [](std::optional<int>& option, int value, int not_set) {
    if (value != not_set) option = value;
  };
  set(options.config.min_ctas, from.min_ctas(), 0);
  set(options.config.max_ctas, from.max_ctas(), 0);
  set(options.config.cga_cluster_size, from.cluster_size(), -1);
  set(options.config.traffic_class, from.traffic_class(), -1);
  options.config.net_name = from.net();
  options.compare_calls = from.compare_calls();
  options.user_buffers = from.user_buffers();
  options.spared_processors = from.spared_processors();
  return options;
}

std::vector<dist::NamedTensor> trained_parameters(const nn::Module& model) {
  std::vector<dist::NamedTensor> parameters;
  for (const nn::NamedParameter& each : model.named_parameters()) {
    if (!each.tensor.requires_grad()) continue;
    LS_CHECK(each.tensor.dtype() == DType::kF32, DTypeError,
             "[train] parameter {} has another dtype: expected float32, got {}.", each.name,
             to_string(each.tensor.dtype()));
    parameters.push_back({each.name, each.tensor});
  }
  return parameters;
}

std::unique_ptr<dist::Reducer> make_reducer(const config::RunConfig& config, const StepShare& share,
                                            const nn::Module& model, dist::ProcessGroup* group,
                                            EarlyUpdate* early_update) {
  dist::ReducerOptions options = reducer_options(config, share, group);
  if (early_update != nullptr) {
    options.on_reduced = [early_update](std::span<const uint32_t> parameters,
                                        const std::vector<Tensor>& gradients) {
      early_update->update(parameters, gradients);
    };
  }
  return std::make_unique<dist::Reducer>(trained_parameters(model), group, options);
}

std::vector<nn::NamedParameter> updated_parameters(const nn::Module& model,
                                                   const dist::ShardedModel* sharded) {
  std::vector<nn::NamedParameter> updated;
  for (const dist::NamedTensor& each :
       sharded != nullptr ? sharded->parameters() : trained_parameters(model)) {
    updated.push_back({each.name, each.tensor});
  }
  return updated;
}

void share_updates(const config::RunConfig& config, Optimizer& optimizer,
                   const dist::ShardedModel* sharded, dist::ProcessGroup* group) {
  if (sharded != nullptr) return optimizer.keep_parts_of(*sharded);
  optimizer.share_between(config.optimizer().muon().share_ranks() ? group : nullptr);
}

bool is_sharded(const config::RunConfig& config, const dist::ProcessGroup* group) {
  return group != nullptr && group->size() > 1 &&
         config.parallel().strategy() != config::ParallelConfig::DDP;
}

std::unique_ptr<dist::ShardedModel> make_sharded_model(const config::RunConfig& config,
                                                       const StepShare& share, nn::Module& model,
                                                       dist::ProcessGroup* group, bool fills) {
  const config::ParallelConfig& parallel = config.parallel();
  LS_CHECK(!parallel.cpu_offload() || parallel.strategy() != config::ParallelConfig::DDP,
           ConfigError,
           "[train] parallel.cpu_offload: DDP keeps the whole state on every rank's device. Choose "
           "a parallel.strategy that shards, such as FULL_SHARD.");
  if (!is_sharded(config, group)) return nullptr;
  const std::string conflict = conflict_with_sharding(config);
  LS_CHECK(conflict.empty(), ConfigError,
           "[train] parallel.strategy: {} cannot be combined with other options of the config: {}. "
           "Leave that out, or use DDP.",
           config::ParallelConfig::Strategy_Name(parallel.strategy()), conflict);
  (void)trained_parameters(model);  // all are f32
  dist::ShardOptions options;
  options.tree_leaves = tree_leaves(config, group);
  if (options.tree_leaves > 0) {
    options.leaves = {share.first_leaf, share.first_leaf + share.leaves};
  }
  const bool is_even = has_even_shares(config.train(), group->size());
  options.accumulates = !is_even || parallel.strategy() == config::ParallelConfig::SHARD_OPTIMIZER;
  options.uneven_passes =
      !is_even || parallel.balance() == config::ParallelConfig::SPEED;  // deals may be uneven
  options.prefetch_bytes = bytes_of_mib(parallel.prefetch_mib());
  if (fills) {
    options.fill = [&model](const Tensor& parameter, const Tensor& into) {
      model.fill_parameter(parameter, into);
    };
  }
  options.shard_size = shard_size(config, *group);
  options.gather_dtype = gather_dtype(config);
  if (parallel.bf16_reduce()) options.reduce_dtype = DType::kBF16;
  options.cpu_offload = parallel.cpu_offload();
  switch (parallel.strategy()) {
    case config::ParallelConfig::HYBRID_SHARD:
      options.strategy = dist::ShardStrategy::kHybridShard;
      break;
    case config::ParallelConfig::SHARD_GRAD_OP:
      options.strategy = dist::ShardStrategy::kShardGradOp;
      break;
    case config::ParallelConfig::SHARD_OPTIMIZER:
      options.strategy = dist::ShardStrategy::kShardOptimizer;
      break;
    default:
      break;
  }
  std::vector<dist::ShardableModule> units;
  if (auto* const blocks = dynamic_cast<nn::BlockModel*>(&model)) {
    for (nn::Module* each : blocks->sequence()) units.push_back(dist::shardable(*each));
  }
  return std::make_unique<dist::ShardedModel>(dist::shardable(model), std::move(units), *group,
                                              options);
}

}  // namespace lockstep::train
