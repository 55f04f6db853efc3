#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "train/optimizer/optimizer.h"

namespace lockstep::config {
class ModelConfig;
class OptimizerConfig;
class RunConfig;
}  // namespace lockstep::config

namespace lockstep::train {

/// Whether `name`, dotted, fits a pattern of model.freeze or model.lora.targets: * stands for any
/// characters, ? for one, and leading parts of the name may be missing in the pattern.
bool fits_pattern(std::string_view name, std::string_view pattern);

/// Gives the model the adapters of model.lora, freezing all other parameters, and freezes those of
/// model.freeze. Throws ConfigError for a pattern that fits nothing, for adapters in
/// model.lora.weights of another rank, and where nothing is left to train.
void choose_trained_parts(nn::Module& model, const config::ModelConfig& config);
/// Loads the weights that the model and its adapters begin with, where model.weights and
/// model.lora.weights name some; `choose_trained_parts` was called before. Throws CheckpointError.
void load_initial_weights(nn::Module& model, const config::ModelConfig& config);

/// The groups of a resolved optimizer message, of which the last is of the parameters that no other
/// fits, and the group of each of `names`.
struct ParameterGroups {
  std::vector<Optimizer::Group> groups;
  std::vector<size_t> group_of;
};
ParameterGroups parameter_groups(const config::OptimizerConfig& config,
                                 const std::vector<std::string>& names);
/// The groups with the factors of model.mup (nn/scaling/mup.h), which multiply theirs. `parameters`
/// are those of the groups, in order, whole or a rank's parts.
ParameterGroups with_mup(ParameterGroups groups, const config::RunConfig& config,
                         const std::vector<nn::NamedParameter>& parameters);
/// Throws ConfigError for a pattern of a group that fits no parameter of the model that is trained.
void check_parameter_groups(const nn::Module& model, const config::OptimizerConfig& config);

}  // namespace lockstep::train
