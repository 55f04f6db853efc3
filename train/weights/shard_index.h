#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/parse_json.h"
#include "core/tensor/dtype.h"
#include "train/weights/manifest_text.h"

namespace lockstep::train {

/// A run of a tensor's elements that one rank wrote.
struct ShardPiece {
  int rank = 0;
  int64_t first = 0;  ///< elements `first` to `end` - 1 of the flattened tensor
  int64_t end = 0;
  friend bool operator==(const ShardPiece&, const ShardPiece&) = default;
};

/// A tensor whose elements are spread over the files of a checkpoint.
struct ShardedTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;      ///< in the model, where the pieces are runs of its elements
  bool transposed = false;         ///< files of one tensor each, as Hugging Face's, transpose it
  std::vector<ShardPiece> pieces;  ///< one after the other, from the first element to the last
  friend bool operator==(const ShardedTensor&, const ShardedTensor&) = default;

  /// As a file that holds it whole says.
  std::vector<int64_t> stored_shape() const;
};

/// What a checkpoint in shards says of its tensors: who wrote which elements. Rank r of `world`
/// wrote its pieces of the weights to `shard_file(kWeightShards, r, world)`, those of the
/// optimizer's state to `shard_file(kOptimizerShards, r, world)`, each under its tensor's name
/// with the shape [end - first]; a rank without pieces wrote no file.
struct ShardIndex {
  using Tensors = std::map<std::string, ShardedTensor, std::less<>>;
  int world = 1;
  std::string strategy;  ///< parallel.strategy of the writers: "FULL_SHARD"
  Tensors weights;
  Tensors optimizer;
  friend bool operator==(const ShardIndex&, const ShardIndex&) = default;
};

inline constexpr std::string_view kWeightShards = "model";
inline constexpr std::string_view kOptimizerShards = "optimizer";

/// "model-00001-of-00004.safetensors" for rank 0 of 4.
std::string shard_file(std::string_view what, int rank, int world);

/// The index as the member "shards" of a manifest.
nlohmann::ordered_json json_of(const ShardIndex& index);
/// The inverse, of a whole manifest whose files are `files`; nothing where it has no such member.
/// Throws CheckpointError, naming `origin` and the tensor, unless the pieces of each tensor are all
/// of its elements, once, and lie in files that the manifest lists with that tensor.
std::optional<ShardIndex> shard_index_of(const nlohmann::ordered_json& manifest,
                                         const FileDigests& files, std::string_view origin);

/// The index of the checkpoint in `folder`; nothing if it has no manifest or is not in shards.
/// Throws UnreadableError, NewerVersionError, or CheckpointError for a manifest that is not one.
std::optional<ShardIndex> shards_in(const std::filesystem::path& folder);

}  // namespace lockstep::train
