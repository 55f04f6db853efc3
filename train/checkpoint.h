#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint_manifest.h"
#include "train/trainer.h"

namespace lockstep::train {

/// A checkpoint is a folder step-%08d that other programs can open and training resumes from:
///   model.safetensors        weights under the names that Hugging Face uses
///   config.json, ...         the task's description of the model, and the tokenizer's files
///   optimizer.safetensors    the optimizer's state, where it has any
///   config.txtpb             the run's resolved config
///   checkpoint.json          position, random state, hashes of all files; written last
/// The files are written and synced in a temporary folder, which is then renamed: a process or
/// machine that stops at any moment leaves the earlier checkpoints intact.

/// Writes the trainer's state below `folder` (a run's checkpoints/) and returns the new folder.
/// Removes what an interrupted attempt left there. Throws CheckpointError or DataError with path
/// and reason; existing checkpoints are then unchanged.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, Trainer& trainer,
                                      const std::string& config_text);

/// Verifies every byte of a checkpoint against its manifest and returns the manifest. Throws
/// CheckpointError if anything is missing or altered, naming the file and, if it is one, the
/// tensor.
CheckpointManifest verify_checkpoint(const std::filesystem::path& path);

/// Loads a checkpoint that `verify_checkpoint` accepted into `trainer`. Throws CheckpointError if
/// it does not fit the trainer: another optimizer, or missing, unexpected or differently shaped
/// tensors, all of them listed.
void restore(Trainer& trainer, const std::filesystem::path& path,
             const CheckpointManifest& manifest);

/// A folder whose name is that of a checkpoint.
struct CheckpointEntry {
  int64_t step = 0;
  std::filesystem::path path;
  bool complete = false;  ///< has its checkpoint.json; the contents were not verified
};

/// Lists the checkpoints in `folder`, oldest first; none if there is no such folder.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& folder);

/// Which checkpoints are kept; see CheckpointConfig in configs/train.proto.
struct Retention {
  int64_t keep_last = 3;
  int64_t keep_every = 0;
};

/// Removes the checkpoints that `retention` does not keep, and the remains of interrupted attempts.
/// Throws DataError with the system's reason.
void remove_old_checkpoints(const std::filesystem::path& folder, const Retention& retention);

}  // namespace lockstep::train
