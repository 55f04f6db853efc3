#pragma once

#include <cstdint>
#include <filesystem>

#include "nn/language_model.h"

namespace lockstep::train {

/// Bytes of the tensors in one file, at most, unless said otherwise.
inline constexpr int64_t kMaxShardBytes = 5'000'000'000;

/// Writes `folder` as Hugging Face's programs read it: config.json, and model.safetensors or, for
/// tensors of more than `max_shard_bytes` bytes in all, model-00001-of-0000N.safetensors and so on
/// with model.safetensors.index.json, which says where each tensor lies. Shards are filled in the
/// order of the model's parameters; no tensor is split, so one that is larger than the limit has a
/// file of its own. Elements are converted to `dtype`, which config.json names, one tensor at a
/// time. The folder appears whole or not at all. Throws ConfigError if `folder` exists or
/// `max_shard_bytes` is not positive; DTypeError for a `dtype` that is not floating;
/// CheckpointError naming path and reason if writing fails.
void save_hugging_face(const nn::LanguageModel& model, const std::filesystem::path& folder,
                       int64_t max_shard_bytes = kMaxShardBytes, DType dtype = DType::kF32);

}  // namespace lockstep::train
