#include "train/gradient_options.h"

#include <cmath>

#include "configs/run.pb.h"
#include "core/check.h"
#include "nn/module.h"

namespace lockstep::train {

namespace {

int64_t bytes_of_mib(double mib) { return std::llround(std::ceil(mib * (1 << 20))); }

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

dist::ReducerOptions reducer_options(const config::RunConfig& config, const StepShare& share,
                                     const dist::ProcessGroup* group) {
  dist::ReducerOptions options;
  options.buckets = {.first_bytes = bytes_of_mib(config.parallel().first_bucket_mib()),
                     .bytes = bytes_of_mib(config.parallel().bucket_mib())};
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

}  // namespace lockstep::train
