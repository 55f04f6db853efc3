#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "configs/load.h"

namespace lockstep::config {

class ModelConfig;

/// What configs need to know of one member of ModelConfig.architecture: a row of the table in
/// architectures.cc. How its model is built is in train/architectures.h.
struct Architecture {
  /// Values that follow from others, by path in the member's message: {"kv_heads", "8"}.
  using Defaults = std::vector<std::pair<std::string, std::string>>;

  const char* name;  ///< of the member: "gpt2"
  /// Derives values that follow from others, for the chosen message with all values in range. Null
  /// if there are none.
  Defaults (*defaults)(const ModelConfig& model);
  /// Throws SourceError for what must hold inside the chosen message, of which every value is set
  /// and in range. Null where there is nothing.
  void (*check)(const ModelConfig& model, const Origins& origins);
  // Of language models, which read tokens; null for classifiers, which read rows of features.
  int64_t (*context_length)(const ModelConfig& model);  ///< positions of a training sequence
  int64_t (*vocabulary)(const ModelConfig& model);      ///< token ids
  // Of transformers, which model.mup can scale; null for others.
  int64_t (*width)(const ModelConfig& model) = nullptr;  ///< elements per token between blocks
  int64_t (*heads)(const ModelConfig& model) = nullptr;  ///< query heads per block

  bool is_language_model() const { return context_length != nullptr; }
  std::string path() const { return std::string("model.") + name; }
};

/// One for each member of ModelConfig.architecture.
std::span<const Architecture> architectures();
/// The one that `model` chose.
const Architecture& architecture_of(const ModelConfig& model);

}  // namespace lockstep::config
