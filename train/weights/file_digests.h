#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/weights/manifest_text.h"

namespace lockstep::train {

/// Name of the manifest of a checkpoint, and of a finished run's weights.
inline constexpr const char* kCheckpointManifest = "checkpoint.json";
inline constexpr const char* kModelManifest = "model.manifest.json";

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

/// The step of the finished run whose weights are in `folder`; nothing if there are none with a
/// manifest. Throws as digests_in.
std::optional<int64_t> model_step_in(const std::filesystem::path& folder);

/// Compares a file with what the manifest of its folder says, if there is one and names the file.
/// Throws CheckpointError naming file and tensor if it differs, and as digests_in.
void check_file(const std::filesystem::path& path);
/// Compares every file that the manifest in `folder` names, but weights, as check_file does.
void check_files_beside_weights(const std::filesystem::path& folder);
/// As check_file, for the bytes of the file that were read already, and with `written`, what the
/// manifest says, if that was.
void check_file(const std::filesystem::path& path, const SafetensorsFile& read,
                const FileDigests* written = nullptr);

}  // namespace lockstep::train
