#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/checkpoint_manifest.h"
#include "train/trainer.h"

namespace lockstep::train {

/// A checkpoint is a folder step-%08d that other programs can open, and that training goes on from:
///   model.safetensors        weights under the names that Hugging Face uses
///   config.json, ...         what the task says of the model, and the tokenizer
///   optimizer.safetensors    the optimizer's state, where it has any
///   config.txtpb             the run's resolved config
///   checkpoint.json          position, random state, hashes of all files; written last
/// The files are written and synced in a folder of another name, which is then renamed; a process
/// or machine that stops at any moment leaves the checkpoints before this one as they were.

/// Writes the trainer's state below `folder` (a run's checkpoints/) and returns the new folder.
/// What an interrupted attempt left there is removed. Throws CheckpointError or DataError with path
/// and reason; then nothing under a checkpoint's name has changed.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, Trainer& trainer,
                                      const std::string& config_text);

/// Reads every byte of a checkpoint. Throws CheckpointError naming the file, and the tensor where
/// one is at fault, if anything is missing or not what was written.
CheckpointManifest verify_checkpoint(const std::filesystem::path& path);

/// Makes `trainer` go on from a checkpoint, which `verify_checkpoint` has found whole. Throws
/// CheckpointError if it does not fit the trainer: another optimizer, or tensors missing,
/// unexpected or of other shapes, all of them listed.
void restore(Trainer& trainer, const std::filesystem::path& path,
             const CheckpointManifest& manifest);

/// A folder that is named as a checkpoint.
struct CheckpointEntry {
  int64_t step = 0;
  std::filesystem::path path;
  bool complete = false;  ///< has its checkpoint.json; the contents were not looked at
};

/// Those in `folder`, oldest first; none if there is no such folder.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& folder);

/// Which checkpoints stay; see CheckpointConfig.
struct Retention {
  int64_t keep_last = 3;
  int64_t keep_every = 0;
};

/// Removes the checkpoints that need not stay, and what interrupted attempts left. Throws DataError
/// with the system's reason.
void remove_old_checkpoints(const std::filesystem::path& folder, const Retention& retention);

}  // namespace lockstep::train
