#pragma once

#include <filesystem>
#include <memory>

#include "nn/language_model.h"
#include "train/report/run_directory.h"

namespace lockstep::train {

/// Writes the model's parameters as safetensors under Hugging Face's names. Published atomically.
/// Throws CheckpointError with path and reason.
void save_weights(const nn::Module& model, const std::filesystem::path& path);

/// Fills the model's parameters from `path`: a safetensors file, or a folder with
/// model.safetensors or the shards of model.safetensors.index.json (WeightFiles). Floating types
/// are converted to the parameter's. Names may have or lack the prefix of a model's body,
/// "transformer." or, where the model's own names have it, "model."; buffers that old files carry
/// (causal masks, rotary frequencies) are skipped, and so is an "lm_head.weight" that equals the
/// token embedding it is tied to. Throws CheckpointError, leaving the model as it was: what
/// WeightFiles throws, or one error that lists every missing, unexpected, ambiguous or differently
/// shaped tensor. Apart from the files, which stay mapped, one tensor at a time is copied.
void load_weights(nn::Module& model, const std::filesystem::path& path);

/// The model of a folder as Hugging Face's programs and training runs write it: config.json says
/// what, safetensors hold the weights. In evaluation mode. Throws CheckpointError where a file is
/// missing or does not fit; ConfigError for a config.json that is not supported.
std::unique_ptr<nn::LanguageModel> load_model(const std::filesystem::path& folder);

/// The folder with a run's weights: its own when it is finished, else its newest complete
/// checkpoint. Throws CheckpointError if there is neither yet.
std::filesystem::path model_folder(const RunDirectory& run);

}  // namespace lockstep::train
