#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "nn/language_model.h"

namespace lockstep::train {

class Tokenizer;

/// The model's config.json, with the ids of the tokenizer's special tokens: bos_token_id,
/// eos_token_id and pad_token_id, which are null without a tokenizer, or one that has none.
std::string hugging_face_config(const nn::LanguageModel& model, const Tokenizer* tokenizer);

/// Default limit of a shard: bytes of its tensors.
inline constexpr int64_t kMaxShardBytes = 5'000'000'000;

/// Writes `folder` in the format of Hugging Face's programs: config.json, and model.safetensors or,
/// if the tensors exceed `max_shard_bytes` bytes in total, shards model-00001-of-0000N.safetensors
/// etc. with model.safetensors.index.json, which maps tensors to files. Shards are filled in the
/// order of the model's parameters; no tensor is split, so one that is larger than the limit has a
/// file of its own. Elements are converted to `dtype`, which config.json names, one tensor at a
/// time. A `tokenizer` is saved beside them. The folder appears atomically. Throws ConfigError if
/// `folder` exists or `max_shard_bytes` is not positive; DTypeError for a `dtype` that is not
/// floating; CheckpointError naming path and reason if writing fails.
void save_hugging_face(const nn::LanguageModel& model, const std::filesystem::path& folder,
                       int64_t max_shard_bytes = kMaxShardBytes, DType dtype = DType::kF32,
                       const Tokenizer* tokenizer = nullptr);

}  // namespace lockstep::train
