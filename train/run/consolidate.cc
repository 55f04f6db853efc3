#include "train/run/consolidate.h"

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "train/run/checkpoint_state.h"
#include "train/weights/tensor_bytes.h"
#include "train/weights/tensor_ranges.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

/// Tensors of a checkpoint in shards, each read whole when it is asked for.
class ShardedTensors {
 public:
  ShardedTensors(const fs::path& folder, const ShardIndex::Tensors& tensors, bool are_weights)
      : tensors_(list(tensors)),
        files_(are_weights ? TensorRanges::of_weights(folder, tensors_)
                           : TensorRanges::of_tensors(folder, tensors_)) {}

  const std::vector<nn::StoredParameter>& list() const { return tensors_; }
  Tensor read(size_t number) const {
    const Tensor& shape = tensors_[number].tensor;
    Tensor whole = empty(shape.sizes(), {shape.dtype(), kCPU});
    files_.read_whole(number, whole);
    return whole;
  }

 private:
  static std::vector<nn::StoredParameter> list(const ShardIndex::Tensors& tensors) {
    std::vector<nn::StoredParameter> listed;
    for (const auto& [name, tensor] : tensors) {
      listed.push_back({name, empty(tensor.shape, {tensor.dtype, kMeta}), tensor.transposed});
    }
    return listed;
  }

  std::vector<nn::StoredParameter> tensors_;
  TensorRanges files_;
};

/// Calls `visit` with each file that a rank alone would have written, and its tensors.
template <class Visit>
void each_whole_file(const fs::path& source, const ShardIndex& shards, const Visit& visit) {
  visit("model.safetensors", ShardedTensors(source, shards.weights, true));
  if (shards.optimizer.empty()) return;
  visit("optimizer.safetensors", ShardedTensors(source, shards.optimizer, false));
}

/// Removes a folder unless it has got its name.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path destination)
      : destination_(std::move(destination)), path_(destination_) {
    path_ += fmt::format(".partial-{}", ::getpid());
    create_folders(path_, "checkpoint");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!published_) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  void publish() {
    std::error_code failed;
    fs::rename(path_, destination_, failed);
    LS_CHECK(!failed, DataError, "[checkpoint] {} cannot be renamed to {}: {}.", path_.string(),
             destination_.string(), failed.message());
    published_ = true;
    const fs::path folder = destination_.parent_path();
    sync_folder(folder.empty() ? "." : folder);
  }

 private:
  fs::path destination_;
  fs::path path_;
  bool published_ = false;
};

}  // namespace

void consolidate(const fs::path& source, const fs::path& destination) {
  LS_CHECK(!name_exists(destination), ConfigError,
           "[checkpoint] {} exists already. Name another destination, or remove this one first.",
           destination.string());
  CheckpointManifest manifest = verify_checkpoint(source);
  LS_CHECK(manifest.shards.has_value(), CheckpointError,
           "[checkpoint] {} is not in shards: it is as one rank writes it.", source.string());
  const ShardIndex shards = *std::exchange(manifest.shards, std::nullopt);
  const FileDigests written = std::exchange(manifest.files, {});
  manifest.format_version = 1;
  TemporaryFolder folder(fs::absolute(destination).lexically_normal());
  each_whole_file(source, shards, [&](const char* name, const ShardedTensors& tensors) {
    manifest.files[name] = save_tensors(folder.path() / name, tensors.list(), {},
                                        [&](size_t number) { return tensors.read(number); });
  });
  for (const auto& [name, digest] : written) {
    if (name.ends_with(".safetensors")) continue;
    const std::vector<std::byte> bytes = read_whole_bytes(source / name);
    write_text(folder.path() / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    manifest.files[name] = digest;
  }
  write_text(folder.path() / kCheckpointManifest, format_manifest(manifest));
  folder.publish();
}

FileDigests whole_digests(const fs::path& source, const ShardIndex& shards) {
  FileDigests files;
  each_whole_file(source, shards, [&](const char* name, const ShardedTensors& tensors) {
    for (size_t i = 0; i < tensors.list().size(); ++i) {
      const nn::StoredParameter& tensor = tensors.list()[i];
      const Tensor whole = tensors.read(i);
      const Tensor stored = (tensor.transposed ? whole.t() : whole).contiguous();
      files[name].tensors[tensor.name] = ContentHasher().add(bytes_of(stored)).result();
    }
  });
  return files;
}

}  // namespace lockstep::train
