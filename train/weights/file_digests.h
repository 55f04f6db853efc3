#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// Digests by file name; for files other than safetensors `header` is the hash of the whole file.
using FileDigests = std::map<std::string, FileDigest>;

/// Manifests are JSON objects with "format", "format_version" and "files", whose last member is the
/// hash of the text before it.
inline constexpr int64_t kManifestVersion = 1;
/// Name of the manifest of a checkpoint, and of a finished run's weights.
inline constexpr const char* kCheckpointManifest = "checkpoint.json";
inline constexpr const char* kModelManifest = "model.manifest.json";

/// Returns `object`, the text of a JSON object printed with indentation 1, with its hash.
std::string sealed(std::string object);

/// Checks format, version and hash of a manifest. Throws NewerVersionError for a later version,
/// whatever the hash, since a later version may compute it differently; and CheckpointError for any
/// other text that `sealed` did not write. Messages begin with `origin`, the file's name.
void check_manifest(std::string_view text, std::string_view format, std::string_view origin);

/// "files" of a manifest, as JSON. The inverse is parse_file_digests, which takes the JSON of the
/// whole manifest and throws CheckpointError.
std::string format_file_digests(const FileDigests& files);
FileDigests parse_file_digests(std::string_view manifest, std::string_view origin);

/// The inverse of ContentHash::hex. Throws std::invalid_argument.
ContentHash parse_hex(const std::string& text);

/// Digest of any file, of a safetensors file with its tensors. Throws UnreadableError if the system
/// refuses, CheckpointError if a safetensors file is malformed or if there is no such file.
FileDigest digest_of_file(const std::filesystem::path& path);

/// Writes the manifest of a finished run's weights: digests of `names`, files in `folder`.
void write_model_manifest(const std::filesystem::path& folder, int64_t step,
                          const FileDigests& files);

/// What the manifest in `folder` says about its files, of a checkpoint or of a finished run; empty
/// if it has none. Throws UnreadableError, NewerVersionError or CheckpointError for a manifest that
/// is not one.
FileDigests digests_in(const std::filesystem::path& folder);

/// Compares a file with what the manifest of its folder says, if there is one and names the file.
/// Throws CheckpointError naming file and tensor if it differs, and as digests_in.
void check_file(const std::filesystem::path& path);
/// Compares every file that the manifest in `folder` names, but weights, as check_file does.
void check_files_beside_weights(const std::filesystem::path& folder);
/// As check_file, for the bytes of the file that were read already.
void check_file(const std::filesystem::path& path, const SafetensorsFile& read);

}  // namespace lockstep::train
