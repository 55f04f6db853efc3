#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "nn/language_model.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// Writes the model's parameters as safetensors under Hugging Face's names. The file appears
/// atomically. Returns its digest. Throws CheckpointError with path and reason.
/// `values` as save_tensors takes it, of the model's stored_parameters().
FileDigest save_weights(const nn::Module& model, const std::filesystem::path& path,
                        const std::function<Tensor(size_t)>& values = {});

/// Loads the model's parameters from `path`: a safetensors file, or a folder with
/// model.safetensors, the shards of model.safetensors.index.json (WeightFiles) or the files of a
/// checkpoint in shards (train/weights/shard_index.h). Floating types
/// are converted to the parameter's. Names may have or lack the prefix of a model's body,
/// "transformer." or, if the model's own names have it, "model."; buffers in old files (causal
/// masks, rotary frequencies) are skipped, and so is an "lm_head.weight" that equals the token
/// embedding it is tied to. Adapters of the model (nn/adapters/lora.h) keep their values where the
/// files have none, so that new ones change nothing of what was loaded. Weights that belong to
/// other multipliers than the model's (train/weights/multiplier_files.h) are changed into ones for
/// those, so that the model computes the same. On error throws CheckpointError and leaves the model
/// unchanged: an error of WeightFiles, or one that lists every missing, unexpected, ambiguous or
/// differently shaped tensor. Bytes that differ from what the manifest of their folder says, a
/// checkpoint's or a finished run's, are such an error. One tensor at a time is copied from what
/// was read. `written` is what that manifest says, if it was read already.
void load_weights(nn::Module& model, const std::filesystem::path& path,
                  const FileDigests* written = nullptr);

/// Loads the model of a folder written by Hugging Face's programs or by a training run: config.json
/// describes it, safetensors files hold the weights. Adapters in a checkpoint are merged into the
/// weights; multipliers of muP stay beside them (nn/scaling/mup.h). Returns it in evaluation mode.
/// Throws CheckpointError if a file is missing or does not fit, ConfigError for an unsupported
/// config.json.
std::unique_ptr<nn::LanguageModel> load_model(const std::filesystem::path& folder);

}  // namespace lockstep::train
