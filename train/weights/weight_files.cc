#include "train/weights/weight_files.h"

#include "core/base/check.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "train/weights/file_digests.h"
#include "train/weights/read_errors.h"
#include "train/weights/weight_index.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

/// Returns the "weight_map" of an index: file by tensor.
std::map<std::string, std::string> read_index(const fs::path& path) {
  try {
    return parse_weight_index(read_whole_file(path, kMostJsonBytes), path.string());
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

bool is_there(const fs::path& path) {
  return reading([&] { return name_exists(path); });
}

using Open = std::function<std::vector<std::string>(const fs::path&)>;

void open_shards(const fs::path& index, const Open& open) {
  std::map<std::string, std::string> left = read_index(index);
  std::map<std::string, std::string> first_tensor_of;
  for (const auto& [tensor, file] : left) first_tensor_of.emplace(file, tensor);
  for (const auto& [file, tensor] : first_tensor_of) {
    const fs::path path = index.parent_path() / file;
    LS_CHECK(is_there(path), CheckpointError,
             "[weights] {}: tensor \"{}\" lies in {}, which is missing. Copy every shard.",
             index.string(), tensor, file);
    for (const std::string& name : open(path)) {
      const auto named = left.find(name);
      LS_CHECK(named != left.end() && named->second == file, CheckpointError,
               "[weights] {}: {} holds tensor \"{}\", which the index does not say. Is this index "
               "of another model?",
               index.string(), file, name);
      left.erase(named);
    }
  }
  LS_CHECK(left.empty(), CheckpointError,
           "[weights] {}: tensor \"{}\" is not in {}, where the index says it lies.",
           index.string(), left.begin()->first, left.begin()->second);
}

}  // namespace

void each_weight_file(const fs::path& path, const Open& open) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    open(path);
    return;
  }
  const fs::path whole = path / "model.safetensors";
  const fs::path index = path / "model.safetensors.index.json";
  if (is_there(whole)) {
    open(whole);
    return;
  }
  LS_CHECK(!is_there(path / ".metadata"), CheckpointError,
           "[weights] {} is a checkpoint of PyTorch's torch.distributed.checkpoint: expected "
           "safetensors. Its .metadata and .distcp files are pickles, which run code when they are "
           "read. Convert it with PyTorch first: dcp_to_torch_save of "
           "torch.distributed.checkpoint.format_utils, then safetensors.torch.save_file.",
           path.string());
  LS_CHECK(is_there(index), CheckpointError,
           "[weights] {} holds no weights: expected {} or {} in it.", path.string(),
           whole.filename().string(), index.filename().string());
  open_shards(index, open);
}

WeightFiles::WeightFiles(const fs::path& path, const FileDigests* written) {
  each_weight_file(path, [&](const fs::path& each) {
    const SafetensorsFile& file =
        *files_.emplace_back(std::make_unique<const SafetensorsFile>(each));
    check_file(each, file, written);
    std::vector<std::string> names;
    for (const TensorRecord& tensor : file.tensors()) {
      entries_.insert_or_assign(entries_.end(), tensor.name,
                                WeightEntry{tensor, each.filename().string()});
      names.push_back(tensor.name);
    }
    return names;
  });
}

const WeightEntry* WeightFiles::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace lockstep::train
