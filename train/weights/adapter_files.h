#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "nn/module.h"

// Low-rank adapters (nn/adapters/lora.h) in the files of PEFT, Hugging Face's library of them:
// adapter_config.json and adapter_model.safetensors.
namespace lockstep::train {

/// Writes adapter_config.json, which says what the adapters among a checkpoint's weights are.
/// Without adapters does nothing.
void write_adapter_config(const nn::Module& model, const std::filesystem::path& folder);

/// Writes both files to `folder`, which is made, under PEFT's names. `values` as save_weights takes
/// it (train/weights.h). The model must have adapters.
void save_adapters(const nn::Module& model, const std::filesystem::path& folder,
                   const std::function<Tensor(size_t)>& values = {});

/// Gives `model` the adapters that adapter_config.json in `folder` describes; without the file does
/// nothing. Throws CheckpointError for a file that is no such description, or does not fit.
void add_described_adapters(nn::Module& model, const std::filesystem::path& folder);

/// The weights of a model with its adapters merged into them, one at a time: what save_tensors
/// takes. Of a model without adapters its stored_parameters() and `values` themselves.
struct MergedWeights {
  std::vector<nn::StoredParameter> stored;
  std::function<Tensor(size_t)> values;  ///< may be empty: `stored` has them
};
/// `values` as save_weights takes it. The model must outlive the result.
MergedWeights merged_weights(const nn::Module& model,
                             const std::function<Tensor(size_t)>& values = {});

}  // namespace lockstep::train
