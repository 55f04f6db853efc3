#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/weights/safetensors.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// A tensor and the name of its file, without folders.
struct WeightEntry {
  TensorRecord tensor;
  std::string file;
};

/// Calls `open` for each file that holds weights of a model, with its path; it returns the names of
/// the file's tensors. `path` and errors as in WeightFiles.
void each_weight_file(
    const std::filesystem::path& path,
    const std::function<std::vector<std::string>(const std::filesystem::path&)>& open);

/// The tensors of a model stored in one safetensors file or in several shards. The files are
/// read into memory, and compared with the manifest of their folder if there is one
/// (file_digests.h). Immutable, so safe to read from many threads.
class WeightFiles {
 public:
  using Entries = std::map<std::string, WeightEntry, std::less<>>;

  /// `path` is a safetensors file, or a folder in Hugging Face's layout: with model.safetensors or,
  /// if that is missing, with model.safetensors.index.json, whose "weight_map" names the shard of
  /// every tensor. Throws CheckpointError as SafetensorsFile does; for a folder with neither file;
  /// and, naming index, file and tensor, for an index that is not JSON of that form, names a file
  /// that is outside the folder or missing, names a tensor that is not in its file, or leaves out
  /// one that is.
  /// `written` is what the manifest says of its folder's files, if it was read already.
  explicit WeightFiles(const std::filesystem::path& path, const FileDigests* written = nullptr);

  /// All tensors, by name.
  const Entries& tensors() const { return entries_; }
  /// Returns the tensor of that name, or null if there is none.
  const WeightEntry* find(std::string_view name) const;

 private:
  std::vector<std::unique_ptr<const SafetensorsFile>> files_;
  Entries entries_;
};

}  // namespace lockstep::train
