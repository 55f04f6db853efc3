#pragma once

#include <string_view>
#include <variant>

#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {

using HuggingFaceConfig = std::variant<Gpt2Options, LlamaOptions>;

/// Reads a Hugging Face config.json (model_type gpt2 or llama). Throws ConfigError naming the key
/// that is missing or not supported, and for values of another type or beyond the range of the same
/// field in configs/model.proto. Allocates nothing of the sizes that the text names.
HuggingFaceConfig parse_hugging_face_config(std::string_view config_json);

/// Returns the number of elements of the model's matrices and embeddings, without those that files
/// may leave out: a lower bound of the model's size. Rounded as a double.
double fewest_elements(const HuggingFaceConfig& config);

}  // namespace lockstep::nn
