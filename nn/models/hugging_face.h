#pragma once

#include <memory>
#include <string_view>

#include "nn/language_model.h"

namespace lockstep::nn {

/// Creates the model that a Hugging Face config.json describes (model_type gpt2 or llama), with
/// newly initialised weights. Throws ConfigError naming the key that is missing or not supported.
std::unique_ptr<LanguageModel> model_from_hugging_face(std::string_view config_json);

}  // namespace lockstep::nn
