#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "train/run/checkpoint_manifest.h"

namespace lockstep::train {

/// What a folder step-%08d is. docs/runs.md has the table of what happens with each.
enum class CheckpointState {
  kWhole,       ///< every byte is what was written
  kDamaged,     ///< bytes were read, and they are not what was written
  kUnreadable,  ///< the system refuses, or it is no folder: nothing is known about the bytes
  kNewer,       ///< written by a later version of Lockstep, in a format unknown here
  kUnfinished,  ///< without a manifest
};

/// A name in a run's checkpoints folder that is that of a checkpoint.
struct CheckpointEntry {
  int64_t step = 0;  ///< the manifest's, or the name's where no manifest can be read
  std::filesystem::path path;
  CheckpointState state = CheckpointState::kUnfinished;
  bool complete = false;     ///< state is kWhole
  bool after_error = false;  ///< CheckpointManifest::after_error, if it is whole
  int ranks = 1;             ///< that wrote it, if it is whole and in shards
  bool is_folder = false;    ///< a folder itself, not a link to one
  std::string problem;       ///< why it is not whole, naming the file; empty if it is
};

/// An entry all of whose bytes were read, with its manifest if it is whole.
struct ExaminedCheckpoint {
  CheckpointEntry entry;
  std::optional<CheckpointManifest> manifest;
};

/// Lists the checkpoints in `folder`, oldest first; none if there is no such folder. Reads the
/// manifests, not the contents: an entry that is whole by its manifest may still be damaged. Throws
/// UnreadableError if the folder cannot be listed.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& folder);
/// The newest of them that is whole by its manifest. Throws as list_checkpoints.
std::optional<CheckpointEntry> newest_whole(const std::filesystem::path& folder);

/// Reads every byte of a checkpoint and says what it is.
ExaminedCheckpoint examine_checkpoint(const std::filesystem::path& path);

/// Verifies every byte of a checkpoint against its manifest and returns the manifest. Throws
/// UnreadableError, NewerVersionError, and CheckpointError if anything is missing or altered,
/// naming the file and, if it is one, the tensor.
CheckpointManifest verify_checkpoint(const std::filesystem::path& path);

/// Folders in `folder` in which a checkpoint is or was being written.
std::vector<std::filesystem::path> partial_checkpoints(const std::filesystem::path& folder);

/// The step-... names in `folder` that earlier processes set aside as damaged.
std::vector<std::filesystem::path> checkpoints_set_aside(const std::filesystem::path& folder);

/// "whole", "DAMAGED", "UNREADABLE", "OF A NEWER VERSION", "UNFINISHED"
const char* name(CheckpointState state);

/// The state of a checkpoint, or of a run's weights, whose reading ended with `error`. The only
/// place where errors become states.
CheckpointState state_after(const CheckpointError& error);

/// Names of checkpoints: kCheckpointPrefix, eight digits and, where that name was taken, ".2" and
/// so on. A folder that is being written, or was being removed, has kPartialPrefix before that, and
/// one that was set aside kDamagedSuffix after it.
inline constexpr std::string_view kCheckpointPrefix = "step-";
inline constexpr std::string_view kPartialPrefix = ".partial-";
inline constexpr std::string_view kDamagedSuffix = ".damaged";

}  // namespace lockstep::train
