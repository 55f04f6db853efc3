#include "train/weights/weight_files.h"

#include <set>

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

/// Reads a file and compares it with the manifest of its folder, if there is one.
std::unique_ptr<const SafetensorsFile> open_verified(const fs::path& path) {
  auto file = std::make_unique<const SafetensorsFile>(path);
  check_file(path, *file);
  return file;
}

bool is_there(const fs::path& path) {
  return reading([&] { return name_exists(path); });
}

}  // namespace

WeightFiles::WeightFiles(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    add_file(path);
    return;
  }
  const fs::path whole = path / "model.safetensors";
  const fs::path index = path / "model.safetensors.index.json";
  if (is_there(whole)) {
    add_file(whole);
    return;
  }
  LS_CHECK(is_there(index), CheckpointError,
           "[weights] {} holds no weights: expected {} or {} in it.", path.string(),
           whole.filename().string(), index.filename().string());
  add_shards(index);
}

const WeightEntry* WeightFiles::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void WeightFiles::add_file(const fs::path& path) {
  files_.push_back(open_verified(path));
  for (const TensorRecord& tensor : files_.back()->tensors()) {
    entries_[tensor.name] = {tensor, path.filename().string()};
  }
}

void WeightFiles::add_shards(const fs::path& index) {
  std::map<std::string, std::string> left = read_index(index);
  std::map<std::string, std::string> first_tensor_of;
  for (const auto& [tensor, file] : left) first_tensor_of.emplace(file, tensor);
  for (const auto& [file, tensor] : first_tensor_of) {
    const fs::path path = index.parent_path() / file;
    LS_CHECK(is_there(path), CheckpointError,
             "[weights] {}: tensor \"{}\" lies in {}, which is missing. Copy every shard.",
             index.string(), tensor, file);
    files_.push_back(open_verified(path));
    for (const TensorRecord& record : files_.back()->tensors()) {
      const auto named = left.find(record.name);
      LS_CHECK(named != left.end() && named->second == file, CheckpointError,
               "[weights] {}: {} holds tensor \"{}\", which the index does not say. Is this index "
               "of another model?",
               index.string(), file, record.name);
      entries_[record.name] = {record, file};
      left.erase(named);
    }
  }
  LS_CHECK(left.empty(), CheckpointError,
           "[weights] {}: tensor \"{}\" is not in {}, where the index says it lies.",
           index.string(), left.begin()->first, left.begin()->second);
}

}  // namespace lockstep::train
