#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "nn/language_model.h"

namespace lockstep::nn {

/// Number of tensors, and of elements of all of them.
struct WeightsSize {
  int64_t tensors = 0;
  int64_t elements = 0;
};

/// Makes the model that a Hugging Face config.json describes (model_type gpt2 or llama), freshly
/// initialised. Throws ConfigError naming the key that is missing or not supported. If the size of
/// the weights to be loaded is given, a model that is far larger than them is a ConfigError before
/// anything of its size is allocated.
std::unique_ptr<LanguageModel> model_from_hugging_face(std::string_view config_json,
                                                       std::optional<WeightsSize> weights = {});

}  // namespace lockstep::nn
