#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/run/checkpoint_state.h"
#include "train/trainer.h"

namespace lockstep::train {

/// A checkpoint is a folder step-%08d that other programs can open and training resumes from:
///   model.safetensors        weights under the names that Hugging Face uses
///   config.json, ...         the task's description of the model, and the tokenizer's files
///   optimizer.safetensors    the optimizer's state, where it has any
///   config.txtpb             the run's resolved config
///   checkpoint.json          position, random state, hashes of all files; written last
/// The files are written and synced in a temporary folder, which is then renamed: a process or
/// machine that stops at any moment leaves the earlier checkpoints intact, and no folder of that
/// name without a manifest.

/// Writes the trainer's state below `folder` (a run's checkpoints/) and returns the new folder.
/// Removes what an interrupted attempt left there. An unfinished checkpoint, or one of the same
/// step, is replaced; if anything else has the name, "step-%08d.2" is used. The caller must be the
/// only writer (RunLock). Throws CheckpointError or DataError with path and reason; existing
/// checkpoints are then unchanged. `collect` as Trainer::collect_state, where that has to be asked
/// of other ranks.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, Trainer& trainer,
                                      const std::string& config_text,
                                      const std::function<Tensor(size_t)>& collect = {});

/// Loads a checkpoint that `verify_checkpoint` accepted, comparing the bytes that it loads with the
/// manifest once more, into `trainer`. Of a sharded model weights and optimizer state are left to
/// Trainer::read_state, by all ranks. Throws CheckpointError if it does not fit the trainer:
/// another optimizer, or missing, unexpected or differently shaped tensors, all of them listed.
void restore(Trainer& trainer, const std::filesystem::path& path,
             const CheckpointManifest& manifest);

/// Says which checkpoints are kept; see CheckpointConfig in configs/train.proto.
struct Retention {
  int64_t keep_last = 3;
  int64_t keep_every = 0;
};

/// Removes the checkpoints that `retention` does not keep, by the step in their manifests, and the
/// remains of interrupted attempts: partial folders, and unfinished checkpoints older than a whole
/// one. Leaves alone what is damaged, unreadable, of a newer version or a symbolic link. The caller
/// must have verified or written the newest. Returns what could not be removed, with the system's
/// reason: training does not need it gone. Throws UnreadableError if the folder cannot be listed.
std::vector<std::string> remove_old_checkpoints(const std::filesystem::path& folder,
                                                const Retention& retention);

}  // namespace lockstep::train
