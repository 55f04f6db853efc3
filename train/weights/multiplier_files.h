#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nn/language_model.h"
#include "nn/module.h"
#include "nn/scaling/mup.h"
#include "train/weights/adapter_files.h"

// The multipliers of muP (nn/scaling/mup.h) in the files of a model. Weights of a checkpoint are
// those that are trained, which belong to multipliers; weights that other programs read have none.
namespace lockstep::train {

/// Whether the weights of the model belong to multipliers.
bool has_multipliers(const nn::Module& model);

/// Throws ConfigError, whose text begins with `[op]`, for a model that has multipliers: the formats
/// of other programs do not hold them.
void require_no_multipliers(const nn::LanguageModel& model, std::string_view op);

/// Writes the model's multipliers into config.json of `folder`, which describes the model without
/// them, and changes its model_type, so that other programs refuse weights that they would compute
/// something else with. Without multipliers does nothing.
void mark_multipliers(const nn::Module& model, const std::filesystem::path& folder);

/// A config.json without the marks, and what they say.
struct UnmarkedConfig {
  std::string text = {};
  nn::Mup mup = {};
};
/// Throws ConfigError for marks that cannot be read.
UnmarkedConfig unmarked(const std::string& config_json);

/// The multipliers of the weights at `path`, a file or a folder: what config.json in its folder
/// says; none without one. Throws CheckpointError where it cannot be read.
nn::Mup multipliers_of(const std::filesystem::path& path);

/// Gives the same weights for a model without multipliers, one at a time. `weights` are all of
/// `model`, which must outlive the result.
MergedWeights without_multipliers(const nn::Module& model, MergedWeights weights);

}  // namespace lockstep::train
