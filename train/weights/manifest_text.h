#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/parse_json.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// Manifests are JSON objects with "format", "format_version" and "files", whose last member is the
/// hash of the text before it. Version 2 added checkpoints in shards (shard_index.h); all other
/// manifests are written as version 1, which earlier programs read.
inline constexpr int64_t kShardedManifestVersion = 2;
/// The newest version that is read.
inline constexpr int64_t kManifestVersion = 2;
inline constexpr std::string_view kCheckpointFormat = "lockstep checkpoint";

/// Returns `object`, the text of a JSON object printed with indentation 1, with its hash.
std::string sealed(std::string object);

/// Parses a manifest and checks its format, version and hash. Throws NewerVersionError for a later
/// version, whatever the hash, since a later version may compute it differently; and
/// CheckpointError for any other text that `sealed` did not write. Messages begin with `origin`,
/// the file's name. With `hashes` it returns the manifest without the hashes of tensors in "files",
/// of which there may be very many, and puts those into `hashes`.
nlohmann::ordered_json checked_manifest(std::string_view text, std::string_view format,
                                        std::string_view origin, FileDigests* hashes = nullptr);

/// "files" of a manifest. The inverse is file_digests_of, which takes the whole manifest, with the
/// `hashes` that checked_manifest took out, and throws CheckpointError.
nlohmann::ordered_json json_of(const FileDigests& files);
FileDigests file_digests_of(const nlohmann::ordered_json& manifest, std::string_view origin,
                            FileDigests hashes = {});

/// The inverse of ContentHash::hex. Throws std::invalid_argument.
ContentHash parse_hex(const std::string& text);

}  // namespace lockstep::train
