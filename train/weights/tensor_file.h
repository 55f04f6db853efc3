#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "nn/module.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {

/// Hashes of a file's contents, to detect damage: of the header and of each tensor.
struct FileDigest {
  uint64_t bytes = 0;
  ContentHash header;
  std::map<std::string, ContentHash> tensors;
  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

/// Digests by file name; for files other than safetensors `header` is the hash of the whole file.
using FileDigests = std::map<std::string, FileDigest>;

/// Writes tensors of any strides as safetensors; the file appears atomically. A view is written
/// without the rest of its storage. A tensor that is the same view as an earlier one (tied weights)
/// is stored once; `__metadata__` then maps the later name to the first, as the safetensors library
/// does. At most one tensor is copied at a time, and only if it is not contiguous. Throws
/// CheckpointError.
///
/// With `values`, element i of the file's tensors is what values(i) returns when it is written, of
/// the shape and dtype of tensors[i], which may be without memory then.
FileDigest save_tensors(const std::filesystem::path& path,
                        std::span<const nn::StoredParameter> tensors,
                        std::map<std::string, std::string> metadata = {},
                        const std::function<Tensor(size_t)>& values = {});

/// Fills `tensors` from a file that holds exactly them, or from the optimizer's state of a
/// checkpoint in shards, of which `path` is the folder. Throws CheckpointError listing every
/// missing, unexpected or wrong-shaped tensor, and for a file that differs from what the manifest
/// of its folder says (file_digests.h), which is `written` if that was read already; `tensors` are
/// then unchanged.
void load_tensors(const std::filesystem::path& path, std::span<const nn::StoredParameter> tensors,
                  const FileDigests* written = nullptr);

/// Throws CheckpointError as `load_tensors` does if the file's tensors are not exactly these.
void check_fits(const std::filesystem::path& path, std::span<const nn::StoredParameter> tensors);
/// Checks `found` instead, what `path` is known to hold.
void check_fits(const std::filesystem::path& path, const std::vector<TensorSpec>& found,
                std::span<const nn::StoredParameter> tensors);

/// Computes the digest of an existing file, of which a piece at a time is in memory. Throws
/// CheckpointError if it is no safetensors file.
FileDigest digest_of(const std::filesystem::path& path);
FileDigest digest_of(const SafetensorsFile& file);

/// Throws CheckpointError naming file and tensor if `found` differs from `written`.
void check_digest(const std::filesystem::path& path, const FileDigest& written,
                  const FileDigest& found);

}  // namespace lockstep::train
