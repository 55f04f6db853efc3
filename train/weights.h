#pragma once

#include <filesystem>
#include <memory>

#include "nn/language_model.h"
#include "train/run_directory.h"

namespace lockstep::train {

/// Writes the model's parameters as safetensors under Hugging Face's names. Published atomically.
/// Throws CheckpointError or DataError with path and reason.
void save_weights(const nn::LanguageModel& model, const std::filesystem::path& path);

/// Fills the model's parameters from such a file; names with or without the prefix
/// "transformer.". Throws CheckpointError listing every missing, unexpected or wrong-shaped tensor.
void load_weights(nn::LanguageModel& model, const std::filesystem::path& path);

/// The model of a run directory: config.json says what, model.safetensors holds the weights.
std::unique_ptr<nn::LanguageModel> load_model(const RunDirectory& run);

}  // namespace lockstep::train
