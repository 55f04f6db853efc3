#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/run/checkpoint_state.h"

namespace lockstep::train {

/// The folder of a checkpoint from its creation until it is whole and has its name: a process or
/// machine that stops at any moment leaves the earlier checkpoints intact, and no folder of that
/// name without a manifest. The caller must be the only writer (RunLock).
class PartialCheckpoint {
 public:
  /// Creates the folder in `checkpoints`, and removes there what interrupted attempts left. Throws
  /// DataError with path and reason.
  PartialCheckpoint(const std::filesystem::path& checkpoints, int64_t step);
  /// Removes the folder unless it was published: the disk may be full.
  ~PartialCheckpoint();
  PartialCheckpoint(const PartialCheckpoint&) = delete;
  PartialCheckpoint& operator=(const PartialCheckpoint&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Adds to `manifest` the digests of files that it does not list, writes it, and gives the folder
  /// the name of its step, which is returned. An unfinished checkpoint, or one of the same step, is
  /// replaced; if anything else has the name, "step-%08d.2" is used. Call once, last. Throws
  /// DataError or CheckpointError; existing checkpoints are then unchanged.
  std::filesystem::path publish(CheckpointManifest manifest);

 private:
  std::filesystem::path checkpoints_;
  int64_t step_;
  std::filesystem::path path_;
  bool published_ = false;
};

/// Says which checkpoints are kept; see CheckpointConfig in configs/train.proto.
struct Retention {
  int64_t keep_last = 3;
  int64_t keep_every = 0;
  std::optional<int64_t> best;  ///< a step whose checkpoint stays
};

/// Removes the checkpoints that `retention` does not keep, by the step in their manifests, and the
/// remains of interrupted attempts: partial folders, and unfinished checkpoints older than a whole
/// one. Leaves alone what is damaged, unreadable, of a newer version or a symbolic link. The caller
/// must have verified or written the newest. Returns what could not be removed, with the system's
/// reason: training does not need it gone. Throws UnreadableError if the folder cannot be listed.
std::vector<std::string> remove_old_checkpoints(const std::filesystem::path& folder,
                                                const Retention& retention);

/// Makes `folder`/best a link to the checkpoint of `step`, at once in the place of an earlier one.
/// Without such a checkpoint does nothing. Throws DataError.
void link_best(const std::filesystem::path& folder, int64_t step);

}  // namespace lockstep::train
