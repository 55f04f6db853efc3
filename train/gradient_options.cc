#include "train/gradient_options.h"

#include <cmath>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "dist/ddp/power_sgd.h"
#include "nn/module.h"
#include "train/optimizer/early_update.h"

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

int64_t bytes_of_mib(double mib) { return std::llround(std::ceil(mib * (1 << 20))); }

dist::ReducerOptions reducer_options(const config::RunConfig& config, const StepShare& share,
                                     const dist::ProcessGroup* group) {
  dist::ReducerOptions options;
  options.buckets = {.first_bytes = bytes_of_mib(config.parallel().first_bucket_mib()),
                     .bytes = bytes_of_mib(config.parallel().bucket_mib())};
  options.communication_hook = communication_hook(config.parallel());
  options.leaves = {share.first_leaf, share.first_leaf + share.leaves};
  if (config.reproducibility() == config::BITWISE) {
    const int64_t leaves = config.train().leaves();
    LS_CHECK(group == nullptr || group->size() <= leaves, ConfigError,
             "[train] reproducibility: BITWISE needs a leaf of the step for each rank: expected at "
             "most {} ranks (train.leaves), got {}. Start fewer, or set train.leaves higher for "
             "all runs that are to be equal.",
             leaves, group->size());
    options.tree_leaves = leaves;
  }
  return options;
}

}  // namespace

std::vector<dist::NamedTensor> trained_parameters(const nn::Module& model) {
  std::vector<dist::NamedTensor> parameters;
  for (const nn::NamedParameter& each : model.named_parameters()) {
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

}  // namespace lockstep::train
