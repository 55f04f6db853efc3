#include "train/weights/shard_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/weights/file_digests.h"
#include "train/weights/read_errors.h"
#include "train/weights/safetensors_header.h"

namespace lockstep::train {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kMostRanks = 99'999;  // the digits of a file's name

int64_t integer(const OrderedJson& json, int64_t most = INT64_MAX) {
  const bool fits =
      json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(most);
  if (!fits) throw std::invalid_argument("a whole number in range expected, got " + json.dump());
  return json.get<int64_t>();
}

OrderedJson to_json(const ShardedTensor& tensor) {
  OrderedJson pieces = OrderedJson::array();
  for (const ShardPiece& piece : tensor.pieces) {
    pieces.push_back({piece.rank, piece.first, piece.end});
  }
  OrderedJson json = {{"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}};
  if (tensor.transposed) json["transposed"] = true;
  json["pieces"] = std::move(pieces);
  return json;
}

OrderedJson to_json(const ShardIndex::Tensors& tensors) {
  OrderedJson json = OrderedJson::object();
  // operator[] would compare a name with all before it; names in a map differ.
  auto& members = json.get_ref<OrderedJson::object_t&>();
  for (const auto& [name, tensor] : tensors) members.emplace_back(name, to_json(tensor));
  return json;
}

ShardedTensor tensor_from(const OrderedJson& json) {
  ShardedTensor tensor;
  const std::optional<DType> dtype = parse_dtype(json.at("dtype").get<std::string>());
  if (!dtype) throw std::invalid_argument("unknown dtype " + json.at("dtype").dump());
  tensor.dtype = *dtype;
  for (const OrderedJson& size : json.at("shape")) tensor.shape.push_back(integer(size));
  tensor.transposed = json.contains("transposed") && json["transposed"].get<bool>();
  for (const OrderedJson& piece : json.at("pieces")) {
    if (!piece.is_array() || piece.size() != 3) {
      throw std::invalid_argument("a piece is [rank, first, end], got " + piece.dump());
    }
    tensor.pieces.push_back(
        {static_cast<int>(integer(piece[0], kMostRanks)), integer(piece[1]), integer(piece[2])});
  }
  return tensor;
}

/// Throws unless the pieces are the tensor, and their files hold it.
void check_pieces(const std::string& name, const ShardedTensor& tensor, std::string_view what,
                  int world, const FileDigests& files, std::string_view origin) {
  const auto elements = static_cast<int64_t>(byte_count(tensor.dtype, tensor.shape, origin, name) /
                                             size_of(tensor.dtype));
  int64_t at = 0;
  std::vector<int> ranks;
  for (const ShardPiece& piece : tensor.pieces) {
    LS_CHECK(piece.first == at && piece.end > at, CheckpointError,
             "[checkpoint] {}: tensor \"{}\": expected a piece from element {} on, got {} to {}.",
             origin, name, at, piece.first, piece.end);
    LS_CHECK(piece.rank < world, CheckpointError,
             "[checkpoint] {}: tensor \"{}\" has a piece of rank {}, of {} ranks.", origin, name,
             piece.rank, world);
    const std::string file = shard_file(what, piece.rank, world);
    const auto listed = files.find(file);
    LS_CHECK(
        listed != files.end() && listed->second.tensors.contains(name), CheckpointError,
        "[checkpoint] {}: tensor \"{}\" has a piece of rank {}, but \"files\" lists none in {}.",
        origin, name, piece.rank, file);
    ranks.push_back(piece.rank);
    at = piece.end;
  }
  LS_CHECK(at == elements, CheckpointError,
           "[checkpoint] {}: tensor \"{}\" has {} elements, and its pieces {}.", origin, name,
           elements, at);
  LS_CHECK(!tensor.transposed || tensor.shape.size() == 2, CheckpointError,
           "[checkpoint] {}: tensor \"{}\" is transposed: expected a matrix.", origin, name);
  std::ranges::sort(ranks);
  LS_CHECK(std::ranges::adjacent_find(ranks) == ranks.end(), CheckpointError,
           "[checkpoint] {}: tensor \"{}\" has two pieces of one rank.", origin, name);
}

ShardIndex index_from(const OrderedJson& json) {
  ShardIndex index;
  index.world = static_cast<int>(integer(json.at("world"), kMostRanks));
  index.strategy = json.at("strategy").get<std::string>();
  for (const auto& [name, tensor] : json.at("weights").items()) {
    index.weights.emplace(name, tensor_from(tensor));
  }
  for (const auto& [name, tensor] : json.at("optimizer").items()) {
    index.optimizer.emplace(name, tensor_from(tensor));
  }
  return index;
}

}  // namespace

std::vector<int64_t> ShardedTensor::stored_shape() const {
  std::vector<int64_t> stored = shape;
  if (transposed) std::ranges::reverse(stored);
  return stored;
}

std::string shard_file(std::string_view what, int rank, int world) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", what, rank + 1, world);
}

OrderedJson json_of(const ShardIndex& index) {
  return {{"world", index.world},
          {"strategy", index.strategy},
          {"weights", to_json(index.weights)},
          {"optimizer", to_json(index.optimizer)}};
}

std::optional<ShardIndex> shard_index_of(const OrderedJson& manifest, const FileDigests& files,
                                         std::string_view origin) {
  if (!manifest.contains("shards")) return std::nullopt;
  ShardIndex index;
  try {
    index = index_from(manifest["shards"]);
  } catch (const std::exception& error) {
    throw CheckpointError(fmt::format("[checkpoint] {}: \"shards\": {}.", origin, error.what()));
  }
  for (const auto& [name, tensor] : index.weights) {
    check_pieces(name, tensor, kWeightShards, index.world, files, origin);
  }
  for (const auto& [name, tensor] : index.optimizer) {
    check_pieces(name, tensor, kOptimizerShards, index.world, files, origin);
  }
  return index;
}

std::optional<ShardIndex> shards_in(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kCheckpointManifest;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  if (!reading([&] { return name_exists(path); })) return std::nullopt;
  const std::string text = reading([&] { return read_whole_file(path, kMostJsonBytes); });
  FileDigests hashes;
  const OrderedJson json = checked_manifest(text, kCheckpointFormat, path.string(), &hashes);
  return shard_index_of(json, file_digests_of(json, path.string(), std::move(hashes)),
                        path.string());
}

}  // namespace lockstep::train
