#pragma once

#include <filesystem>
#include <string>

#include "nn/language_model.h"

namespace lockstep::train {

class Tokenizer;

/// Writes a GPT-2 or a Llama as a GGUF file (version 3), which llama.cpp and the programs built on
/// it read: metadata, the tokenizer unless it is null, and the weights under GGUF's names, matrices
/// as `dtype` (float32, bfloat16 or float16) and vectors as float32. The rows of Llama's queries
/// and keys are in GGUF's order, pairs of a head side by side. `name` is the model's, for people.
/// The file appears atomically. Throws ConfigError for a model of another kind and for a RoPE
/// scaling that is not linear; DTypeError for another dtype; CheckpointError if writing fails.
void save_gguf(const nn::LanguageModel& model, const Tokenizer* tokenizer,
               const std::filesystem::path& path, DType dtype, const std::string& name);

}  // namespace lockstep::train
