#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {

/// Adapters by themselves, in the two files in which PEFT and `save_adapters`
/// (train/weights/adapter_files.h) write them: adapter_config.json and adapter_model.safetensors.
/// The model that they belong to lies elsewhere.
class PeftAdapters {
 public:
  /// Reads the files of `folder`. Throws CheckpointError if one is missing or damaged, and naming
  /// the setting for adapters that nn/adapters/lora.h does not have: of other kinds than LoRA, with
  /// biases or whole modules, of several ranks, or that change the weights under them.
  explicit PeftAdapters(const std::filesystem::path& folder);

  int64_t rank() const { return rank_; }
  /// The adapters' results are multiplied by alpha() / rank().
  double alpha() const { return alpha_; }
  /// Whether the layer with this path in `model` has an adapter here.
  bool contains(const nn::Module& model, std::string_view path) const;
  /// Fills the adapters of `model`, at once or, where their values are deferred
  /// (nn/initial_values.h), by Module::fill_parameter. Throws CheckpointError, and leaves the model
  /// unchanged, unless its adapters are exactly these, with the same shapes.
  void load_into(nn::Module& model) const;

 private:
  struct Matrices {
    const TensorRecord* a = nullptr;
    const TensorRecord* b = nullptr;
  };

  std::string path_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  std::shared_ptr<const SafetensorsFile> file_;  ///< until deferred values are written
  /// By the layer's name in the file, without what PEFT puts around it.
  std::map<std::string, Matrices, std::less<>> layers_;
};

}  // namespace lockstep::train
